/* What waits on this machine: paid results that no worker has delivered yet. */
#include "cli/doctor.h"

#include "common/io/config.h"
#include "common/io/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define REST_AGE_S 60 /* a worker at work delivers sooner */

struct look {
	struct doctor *doctor;
	uint32_t found;
};

static void
say_strange(struct doctor *doctor, const struct state_dir_rest *rest)
{
	char action[STATE_DIR_PATH_SIZE + 2 * STATE_DIR_QUEUE_SIZE];

	snprintf(action, sizeof action,
	         "start a worker of that queue with this state_dir; if it is this queue "
	         "and only its address has changed: printf %%s '%s' > %s/queue, and then "
	         "start a worker again",
	         doctor->queue, rest->path);
	doctor_say(doctor, DOCTOR_WARNING, "results", action,
	           "%u undelivered results of another queue (%s) wait in %s",
	           rest->results, rest->queue, rest->path);
}

static void
tell(const struct state_dir_rest *rest, void *data)
{
	struct look *look = data;

	if (strcmp(rest->queue, look->doctor->queue) != 0)
		say_strange(look->doctor, rest);
	else if (rest->age_s >= REST_AGE_S)
		doctor_say(
			look->doctor, DOCTOR_WARNING, "results",
			"start one more worker here: it delivers them before anything "
			"else",
			"%u undelivered results of this queue wait in %s for %llu s: no "
			"worker runs there",
			rest->results, rest->path, (unsigned long long)rest->age_s);
	else
		return;
	look->found++;
}

/* A directory of workers that is not there is none, one that is closed is said. */
static bool
is_open(struct doctor *doctor, const char *path)
{
	if (access(path, R_OK | X_OK) == 0)
		return true;
	if (errno == EACCES)
		doctor_say(doctor, DOCTOR_FINE, "results", NULL,
		           "%s is closed to this user: ask as the user of the workers "
		           "whether results wait there",
		           path);
	return false;
}

/* As a worker of this machine finds it; what is wrong in the file, that one says. */
static void
read_state_dir(char ret_path[STATE_DIR_PATH_SIZE])
{
	struct config *config = config_create();
	const char *file = config_find(NULL);
	struct config_error error;

	if (config && file)
		(void)!config_load(config, file, &error);
	snprintf(ret_path, STATE_DIR_PATH_SIZE, "%s",
	         config ? config->state_dir : STATE_DIR_DEFAULT);
	(void)config_destroy(config);
}

void
doctor_look_at_results(struct doctor *doctor)
{
	char configured[STATE_DIR_PATH_SIZE], memory[STATE_DIR_PATH_SIZE];
	const char *own;
	struct look look = { .doctor = doctor };

	read_state_dir(configured);
	own = state_dir_choose(configured, memory);
	if (is_open(doctor, configured))
		state_dir_look(configured, tell, &look);
	if (own != configured && is_open(doctor, own))
		state_dir_look(own, tell, &look);
	if (look.found == 0)
		doctor_say(doctor, DOCTOR_FINE, "results", NULL,
		           "no undelivered results wait on this machine");
}
