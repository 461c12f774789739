// views.js - each view by its name in the address.  `read` answers the paths to fetch under
// api/v1; `show` makes the page of what they said.
import { families, family } from "./families.js";
import { dead, job, jobs } from "./jobs.js";
import { overview } from "./overview.js";
import { places } from "./places.js";
import { route, routes } from "./routes.js";
import { workers } from "./workers.js";

export const VIEWS = { overview, families, routes, places, workers, jobs, dead, family, route, job };
