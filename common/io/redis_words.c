#include "common/io/redis_words.h"

#include <stdlib.h>

int
redis_words_init(struct redis_words *words, const struct span *spans, size_t count)
{
	words->texts = words->few_texts;
	words->lens = words->few_lens;
	if (count > REDIS_WORDS_FEW) {
		words->texts = calloc(count, sizeof *words->texts);
		words->lens = calloc(count, sizeof *words->lens);
		if (!words->texts || !words->lens)
			return ERR_MEMORY;
	}
	for (size_t i = 0; i < count; i++) {
		words->texts[i] = spans[i].len > 0 ? spans[i].data : "";
		words->lens[i] = spans[i].len;
	}
	return 0;
}

void
redis_words_fini(struct redis_words *words)
{
	if (words->texts != words->few_texts)
		free(words->texts);
	if (words->lens != words->few_lens)
		free(words->lens);
}
