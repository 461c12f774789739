// grafana.mjs - the dashboard against Grafana's own schema (@grafana/schema, its types).
//
// usage: node grafana.mjs DASHBOARD.json        says what is wrong with it, line by line
//
// A member that Grafana does not know, a word that is not one of its words, a value of
// another kind, an option that it expects and is not there: each is an error of the
// compiler.  What belongs to the data source (Prometheus has no types of its own there) is
// listed below.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ts = createRequire(import.meta.url)("typescript");
const here = dirname(fileURLToPath(import.meta.url));

// Grafana writes words as enums; JSON has only the words.
const TYPES = `import type { AnnotationQuery, Dashboard, DataSourceRef, Panel, RowPanel, VariableModel } from "@grafana/schema";
import type { Options as StatOptions } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as LineOptions, FieldConfig as LineConfig } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
type Plain<T> = T extends string ? \`\${T}\` : T extends number ? (number extends T ? number : \`\${T}\` extends \`\${infer N extends number}\` ? N : T) : T extends boolean ? T : T extends (infer E)[] ? Plain<E>[] : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
interface Target { refId: string; expr: string; datasource: DataSourceRef; legendFormat?: string; instant?: boolean; range?: boolean; format?: "time_series" | "table" | "heatmap" }
type Note = Plain<AnnotationQuery> & { expr: string; titleFormat?: string };
type Variable = Plain<VariableModel> & { definition?: string };
type Config = NonNullable<Panel["fieldConfig"]>;
type Shown<O, C> = Omit<Plain<Panel>, "options" | "fieldConfig" | "targets"> & { options: Plain<O>; targets: Target[]; fieldConfig: Omit<Plain<Config>, "defaults"> & { defaults: Omit<Plain<Config["defaults"]>, "custom"> & { custom?: Plain<C> } } };
`;
const PANELS = { row: "Plain<RowPanel>", stat: "Shown<StatOptions, Record<string, never>>", timeseries: "Shown<LineOptions, LineConfig>" };

function source(board) {
  const { panels, annotations, templating, ...rest } = board;
  const parts = [["Omit<Plain<Dashboard>, \"panels\" | \"annotations\" | \"templating\">", rest], ["Note[]", annotations.list], ["Variable[]", templating.list],
    ...panels.map((panel) => [PANELS[panel.type] || "never", panel])];
  return TYPES + parts.map(([type, value], index) => `export const part_${index}: ${type} = ${JSON.stringify(value, null, 1)};\n`).join("");
}

function complaints(text) {
  const name = join(here, "grafana-board.ts"); // never written: it only has to stand beside node_modules
  const options = { strict: true, noEmit: true, skipLibCheck: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, types: [] };
  const host = ts.createCompilerHost(options), read = host.getSourceFile, exists = host.fileExists;
  host.getSourceFile = (path, ...more) => (path === name ? ts.createSourceFile(path, text, options.target) : read.call(host, path, ...more));
  host.fileExists = (path) => path === name || exists.call(host, path);
  const program = ts.createProgram([name], options, host), lines = text.split("\n");
  return ts.getPreEmitDiagnostics(program).map((one) => {
    const line = one.file && one.file.fileName === name ? lines[one.file.getLineAndCharacterOfPosition(one.start).line].trim() : "";
    return `${line}: ${ts.flattenDiagnosticMessageText(one.messageText, " ")}`;
  });
}

const found = complaints(source(JSON.parse(readFileSync(process.argv[2], "utf8"))));
process.stdout.write(found.length ? `${found.join("\n")}\n` : "as Grafana's schema has it\n");
process.exitCode = found.length ? 1 : 0;
