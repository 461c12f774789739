#include "common/error.h"

const char *
error_text(int error)
{
	switch ((enum error)error) {
#define X(name, text) \
	case name:    \
		return text;
		ERROR_LIST(X)
#undef X
	case ERR_NONE:
		return "no error";
	case ERR_FIRST:
	case ERR_END:
		break;
	}
	return "unknown error";
}
