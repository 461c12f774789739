-- admin.lua - what people ask for, and the counts.

do

-- True if the entry `id` of the inbox is not one job but many, which have ids of their own.
function job.is_pack(id)
	local fields = payload.entry(id) or {}
	for i = 1, #fields - 1, 2 do
		local first = fields[i] == 'm' and byte(fields[i + 1], 1) or 0
		if fields[i] == 'json' and find(fields[i + 1], '^%s*%[') or
			first >= 144 and first <= 159 or first == 220 or first == 221 then
			return true
		end
	end
	return false
end

-- cancel id
local function cancel()
	local id = text_at(2, 'id')
	if not is_job(id) then
		refuse('id', 'expected a job id, got "' .. sub(id, 1, 40) .. '"')
	end
	local kind = not call('ZSCORE', key.dead, id) and job.payload_kind(id)
	if not kind or (kind == 'entry' and not job.is_admitted(id) and job.is_pack(id)) then
		return { 'OK', now, 'gone' }
	end
	job.end_from_outside(id, kind, 'cancelled')
	book_check()

	book_store()
	deliver()
	return { 'OK', now, 'ended' }
end

local DECIDE_MAX = 16777216 -- bytes of a payload that the scheduler is to read

-- It died before anybody knew where it belongs: the scheduler looks at it anew, as at one
-- whose prefix was missing.  What was wrong may be right by now.
function job.decide_anew(past, id)
	past.element, past.band, past.reason, past.why = id .. '~', 'n', 'undecided', ''
	past.anew, past.dirty = true, true
	set_del(key.dead, id)
	note('laters', now_text(), id)
	note('pasts_gone', key.ns .. 'result:' .. id)
	return 'queued'
end

-- True if no part of a slim payload stands elsewhere, as the prefix of a split one does.
function job.is_whole(id)
	local head = call('GETRANGE', key.ns .. 'slim:' .. id, 0, 11)
	return sub(head, 1, 6) == 'entry\n' or head == 'slim1 whole\n'
end

local function requeue_one(id)
	local past = call('ZSCORE', key.dead, id) and past_of(id)
	if not past then
		return 'gone'
	end
	local family = past.family ~= '' and family_of(past.family)
	local size = call('STRLEN', key.ns .. 'slim:' .. id)
	if family and family.missing or size == 0 or
		not family and (size > DECIDE_MAX or not job.is_whole(id)) then
		return 'lost'
	end
	if not family then
		return job.decide_anew(past, id)
	end
	local element = past.element
	if not element_is_slim(element) then -- its payload has moved when it died
		element = (gsub(element, '^[^/]+', '%0~'))
	end
	push(family, past.now == '1' and NOW or READY[BAND[past.band] or 2], element)
	set_del(key.dead, id)
	family_count(past.family, -1)
	note('pasts_gone', past.key)
	note('pasts_gone', key.ns .. 'result:' .. id) -- it has not ended after all
	return 'queued'
end

local function drop_one(id)
	local past = call('ZSCORE', key.dead, id) and past_of(id)
	if not past then
		return 'gone'
	end
	finish(id, true, true)
	family_count(past.family, -1)
	set_del(key.dead, id)
	return 'dropped'
end

-- Takes each of the ids once.
local function each_dead(take)
	local answer, seen = { 'OK', now }, {}
	level = true
	for i = 2, min(argc, 1001) do
		answer[i + 1] = is_job(argv[i]) and not seen[argv[i]] and take(argv[i]) or 'gone'
		seen[argv[i]] = true
	end
	book_check()

	book_store()
	deliver()
	return answer
end

-- requeue id…
local function requeue()
	return each_dead(requeue_one)
end

-- drop id…
local function drop()
	return each_dead(drop_one)
end

local UNHELD_MAX = 64 -- routes

-- Families follow when the scheduler hears of it: its audit changes their records.
local function hold_route(word, who, route)
	if route == '' or #route > 128 or find(route, '[|%c]') then
		refuse('route', 'expected 1 to 128 bytes without bars and control characters')
	end
	local is_new = call('HEXISTS', key.unheld, route) == 0
	if is_new and word == 'off' and call('HLEN', key.unheld) >= UNHELD_MAX then
		refuse('route', 'holding is off for 64 routes already; switch it off for all')
	end

	if word == 'off' then
		call('HSET', key.unheld, route, now_text() .. ' ' .. who)
	else
		call('HDEL', key.unheld, route)
	end
	say('hold_route ' .. word .. ' ' .. (who == '' and '-' or who) .. ' ' .. route)
	deliver()
	return { 'OK', now }
end

-- hold on|off [who] [route]
local function hold()
	local word = text_at(2, 'word')
	local who = sub(gsub(argv[3] or '', '[%c ]', '_'), 1, 100)
	if word ~= 'on' and word ~= 'off' then
		refuse('word', 'expected on or off, got "' .. sub(word, 1, 40) .. '"')
	end
	if argv[4] then
		return hold_route(word, who, argv[4])
	end
	local pools = call('HGETALL', key.pools)
	call('HGET', key.meta, 'hold')

	call('HSET', key.meta, 'hold', word)
	say('hold ' .. word .. ' ' .. who)
	for i = 1, #pools, 2 do
		wake(pools[i])
	end
	deliver()
	return { 'OK', now }
end

-- pause family on|off
local function pause()
	local family, word = family_of(text_at(2, 'family')), text_at(3, 'word')
	if word ~= 'on' and word ~= 'off' then
		refuse('word', 'expected on or off, got "' .. sub(word, 1, 40) .. '"')
	end
	if family.missing or word == 'on' and #family.tail.lanes == 0 then -- nobody's, but shared
		return { 'OK', now, 'gone' }
	end
	level = true
	family.paused_was = family_is_paused(family)
	local flags = family_number(family, 5, 6)
	family.rec = put(family.rec, 5, 6, flags - flags % 2 + (word == 'on' and 1 or 0))
	family.pushed = true
	say('pause ' .. word .. ' ' .. argv[2])
	book_check()

	book_store()
	deliver()
	return { 'OK', now, 'done' }
end

-- The fields of a family's record with another pool and budget.
local function family_move(family, pool, budget)
	local tail = family.tail
	family.rec = sub(family.rec, 1, 42) .. pool .. '|' .. budget ..
		sub(family.rec, 44 + #tail.pool + #tail.budget)
	family.tail = family_tail(family.rec)
	family.pushed = true
end

-- move owner pool[ budget] family…   The configuration drains them in another pool, or has
-- them at another account or class; their lanes follow with what they have in flight.
local function move()
	local refused, home = owner_check(), text_at(3, 'pool')
	local pool, budget = match(home, '^(%S*) ?(.*)$')
	if not is_name(pool) then
		refuse('pool', 'expected a name, got "' .. sub(home, 1, 40) .. '"')
	elseif budget ~= '' and not find(budget, '^[^|,*%s:]+:[^|,*%s:]+$') then
		refuse('budget', 'expected upstream:class, got "' .. sub(budget, 1, 40) .. '"')
	end
	if refused then
		return refused
	end
	level = true
	local names, moved = call('HGET', key.pools, pool) or '', 0
	for i = 4, argc do
		local family = family_of(argv[i])
		local tail = family.tail
		local own = budget ~= '' and budget or not family.missing and tail.budget
		if not family.missing and (tail.pool ~= pool or tail.budget ~= own) then
			family_move(family, pool, own)
			moved = moved + 1
			if not find(',' .. names .. ',', ',' .. own .. ',', 1, true) then
				names = names == '' and own or names .. ',' .. own
			end
		end
	end
	book_check()
	wake(pool)

	book_store()
	if moved > 0 then
		call('HSET', key.pools, pool, names)
	end
	deliver()
	return { 'OK', now, moved }
end

-- unpark budget [who]: a budget's name, or an account's for all of its budgets.
local function unpark()
	local name, who = text_at(2, 'budget'), argv[3] or ''
	local pools, known, parked = call('HGETALL', key.pools), {}, false
	for i = 1, #pools, 2 do
		local names = list_of(pools[i + 1])
		for j = 1, #names do
			if names[j] == name or sub(names[j], 1, #name + 1) == name .. ':' then
				local budget = budget_of(names[j])
				known[names[j]] = true
				parked = parked or budget.parked > now
				budget.parked = 0
				wake(pools[i])
			end
		end
	end
	for i = 1, budget_n do
		local word = budget_list[i].name
		if known[word] then
			say('unpark ' .. word .. ' ' .. sub(gsub(who, '[%c ]', '_'), 1, 100))
		end
	end
	book_check()

	book_store()
	deliver()
	return { 'OK', now, budget_n == 0 and 'gone' or parked and 'done' or 'free' }
end

-- Why a bypassed or leaky lane is not warmed, by its reason; the rest cannot be cached.
local NOT_WARMED = { [50] = 'small', [51] = 'unshared', [55] = 'off', [57] = 'off' }

-- Why this family's prefix need not, or cannot, be written ahead; nil if it can.
local function warm_refusal(family)
	local lane = family.tail.lanes[1] and lane_of(family.tail.lanes[1])
	if family.missing or not lane or lane.missing then
		return 'gone'
	end
	if call('HGET', key.meta, 'hold') == 'off' or family_is_unheld(family) then
		return 'off'
	end
	local gate, taken = byte(lane.rec, 2), byte(lane.rec, 68)
	if gate >= 52 then
		return NOT_WARMED[byte(lane.rec, 3)] or 'uncacheable'
	elseif gate == 51 and now < sub(lane.rec, 36, 49) + 0 then
		return 'warm'
	elseif gate == 49 or taken == 49 or taken == 50 then
		return 'writing'
	elseif gate == 50 then
		return 'written'
	end
	return family_is_paused(family) and 'paused' or
		budget_of(family.tail.budget).parked > now and 'parked' or nil
end

-- warm family [who]
local function warm()
	local family, who = family_of(text_at(2, 'family')), argv[3] or ''
	local refusal = warm_refusal(family)
	if refusal then
		return { 'OK', now, refusal }
	end

	call('DEL', key.ns .. 'warm:' .. family.id) -- what the scheduler said the last time
	say('warm ' .. family.id .. ' ' .. sub(gsub(who, '[%c ]', '_'), 1, 100))
	deliver()
	return { 'OK', now, 'asked' }
end

-- count: the conservation check.
local function count_all()
	local got = call('HMGET', key.meta, 'cursor', 'slims')
	local ids = call('HGETALL', key.families)
	local ready, back, now_list = 0, 0, 0
	for i = 1, #ids, 2 do
		for band = 1, 3 do
			back = back + call('LLEN', key.ns .. BACK[band][1] .. ids[i])
			ready = ready + call('LLEN', key.ns .. READY[band][1] .. ids[i])
		end
		now_list = now_list + call('LLEN', key.ns .. NOW[1] .. ids[i])
	end
	local _, _, leases = leases_count()
	local last = call('XREVRANGE', key.jobs, '+', '-', 'COUNT', 1)
	local cursor = match(got[1] or '0-0 0', '^%S+')
	local drained = not last[1] or not id_before(cursor, last[1][1])
	return { 'OK', now, drained and 1 or 0, call('XLEN', key.jobs), (got[2] or 0) + 0, ready,
		back, now_list, leases, call('ZCARD', key.later), call('ZCARD', key.dead),
		call('HLEN', key.ended) }
end

local function version()
	return { 'OK', now, '@VERSION@' }
end

register('cancel', cancel)
register('requeue', requeue)
register('drop', drop)
register('hold', hold)
register('pause', pause)
register('move', move)
register('unpark', unpark)
register('warm', warm)
register('count', count_all)
register('version', version)

end
