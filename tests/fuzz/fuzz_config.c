/* Any bytes as a configuration: refused with a message that names the place, leaving what
 * was there, or accepted; and what is accepted and finished prints as YAML that reads
 * back to the same. */
#include "common/io/config.h"
#include "tests/fuzz/fuzz.h"

static struct config *
defaults(void)
{
	struct config *config = config_create();

	VERIFY(config);
	return config;
}

static void
check_reads_back(const struct config *config)
{
	struct buffer first = BUFFER_INIT(4 << 20), second = BUFFER_INIT(4 << 20);
	struct config *again = defaults();
	struct config_error error;

	VERIFY(config_print(config, &first) == 0);
	VERIFY(config_parse(again, buffer_span(&first), "printed", &error) == 0);
	VERIFY(config_finish(again, &error) == 0);
	VERIFY(config_print(again, &second) == 0);
	VERIFY(span_equals(buffer_span(&first), buffer_span(&second)));
	config_destroy(again);
	buffer_fini(&first);
	buffer_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config = defaults();
	struct config_error error;
	int err;

	err = config_parse(config, fuzz_span(data, size), "input", &error);
	if (err < 0) {
		VERIFY(error.message[0] != '\0' || err == ERR_MEMORY);
		VERIFY(config->upstreams_count == 0);
	} else if (config_finish(config, &error) < 0) {
		VERIFY(error.message[0] != '\0');
	} else {
		check_reads_back(config);
	}
	config_destroy(config);
	return 0;
}
