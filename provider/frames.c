#include "provider/frames.h"

static void
line(struct frames *frames, const char *field, struct span value)
{
	struct buffer *bytes = &frames->script->bytes;

	(void)buffer_append_text(bytes, field);
	(void)buffer_append(bytes, value);
	(void)buffer_append_text(
		bytes, settings_get(frames->settings, SETTINGS_SSE_CRLF) ? "\r\n" : "\n");
}

static void
end_event(struct frames *frames)
{
	line(frames, "", SPAN(""));
}

/* The data line; padding goes before the last brace, as seen in the wild. */
static void
data(struct frames *frames, struct span json)
{
	struct buffer *bytes = &frames->script->bytes;

	if (settings_get(frames->settings, SETTINGS_SSE_PADDING) && json.len > 0 &&
	    json.data[json.len - 1] == '}') {
		(void)buffer_append_text(bytes, "data: ");
		(void)buffer_append(bytes, (struct span){ json.data, json.len - 1 });
		line(frames, "      ", SPAN("}"));
		return;
	}
	line(frames, "data: ", json);
}

static void
add_ping(struct frames *frames)
{
	line(frames, "event: ", SPAN("ping"));
	line(frames, "data: ", SPAN("{\"type\": \"ping\"}"));
	end_event(frames);
}

static void
add_noise(struct frames *frames)
{
	uint64_t every = settings_get(frames->settings, SETTINGS_SSE_PING_EVERY);

	if (frames->count == 0)
		return; /* the first event is the first */
	if (frames->pings &&
	    (every > 0 ? frames->count % every == 0 : frames->count == 1))
		add_ping(frames);
	if (settings_get(frames->settings, SETTINGS_SSE_COMMENTS)) {
		line(frames, ": ", SPAN("keep-alive"));
		line(frames, ":", SPAN(""));
		end_event(frames);
	}
	if (settings_get(frames->settings, SETTINGS_SSE_UNKNOWN)) {
		line(frames, "event: ", SPAN("weather_report"));
		line(frames, "data: ",
		     SPAN("{\"type\":\"weather_report\",\"object\":\"weather.report\","
		          "\"choices\":[],\"usage\":null}"));
		end_event(frames);
	}
}

void
frames_add(struct frames *frames, const char *event, struct span json, uint64_t due_us)
{
	add_noise(frames);
	if (event)
		line(frames, "event: ", span_from(event));
	data(frames, json);
	end_event(frames);
	script_add(frames->script, due_us);
	frames->count++;
}
