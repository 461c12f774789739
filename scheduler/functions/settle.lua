-- settle.lua - jobs that are done, first events, late results.
--
--   settle       result + usage ──► payload, lease, history go; the result is handed over;
--                then a claim into the slots that are free now, in the same call
--   begin        first event + usage ──► `until` moves, the scheduler hears of it
--   settle_late  a paid result whose lease is gone: accepted if alive and nobody's
--
-- A plain job without usage, the hot path, is taken apart by position and says nothing.

local problems -- slot, word, what the slot holds
local problem
do

function problem(slot, word, held)
	local n = #problems
	problems[n + 1], problems[n + 2], problems[n + 3] = slot, word, held or ''
end

-- ---- what a usage does -------------------------------------------------------------

local function until_raise(lane, sent)
	local life = sub(lane.rec, 58, 67) + 0
	if life > 0 and not lane.missing then
		local till = min(min(sent, now) + life, NEVER)
		if till > sub(lane.rec, 36, 49) + 0 then
			lane.rec = put(lane.rec, 36, 49, till)
		end
	end
end

-- An entry that was read or written lives on from when the request was sent; so do those
-- above it, which it contains.
function usage.touch(lease, lane, used)
	if not used.sent or ((used.read or 0) <= 0 and (used.written or 0) <= 0) then
		return
	end
	if sub(lane.rec, 4, 13) + 0 == lease.g then
		until_raise(lane, used.sent)
	end
	local family = lane_join(lane)
	local ancestors = family and family.tail.ancestors or {}
	for i = 1, #ancestors do
		local above = lane_of(ancestors[i])
		if gate_is_open(above) then
			until_raise(above, used.sent)
		end
	end
end

-- What was estimated at the start and what it came to.
function usage.correct(lease, lane, used)
	if lane.tail.budget == '' then
		return
	end
	local budget = budget_of(lane.tail.budget)
	if budget.limited then
		local input, output = 0, 0
		if used.uncached and used.written then
			input = lease.input - used.uncached - used.written
		end
		if used.output then
			output = lease.output - used.output
		end
		usage.into_budget(budget, input, output)
	end
end

-- ---- settle ------------------------------------------------------------------------

-- What the provider says it used was used, whatever becomes of the job.
local function take_usage(lease, lane, words)
	if words ~= '' then
		local used = usage.parse(words)
		usage.touch(lease, lane, used)
		usage.correct(lease, lane, used)
	end
end

local function settle_ticket(lease, lane, words)
	ticket.finish(lease, lane, 3, usage.words(words))
end

-- Everything that the fast path leaves out.  Answers the lane, and true if the job had
-- ended before.
local function settle_whole(text, words, reply, ttl, result)
	local lease = lease_parse(text)
	local lane = lease_drop(lease)
	take_usage(lease, lane, words)
	if lease.role == 't' then
		settle_ticket(lease, lane, words)
		return lane, false
	end
	if job.is_ended(lease.id) then
		usage.spend(lease, 'dropped', words)
		job.drop_ended(lease)
		return lane, true
	end
	finish(lease.id, lease.slim, lease.delivery > 1)
	family_of(lease.family)
	result_out(lease.id, reply, ttl, result)
	if words ~= '' or lease.role ~= 'p' then
		say('done ' .. lease.lane .. ' ' .. lease.family .. ' ' .. format('%d', lease.g) .. ' ' ..
			lease.role .. ' ' .. usage.words(words))
	end
	return lane, false
end

-- A plain first delivery without usage: `…|lane|<ms>-<seq>|p|…|1|b`.
local function settle_one(text, skip, words, reply, ttl, result)
	local at = skip + 2 -- the family's first digit
	local bar = byte(text, at + 32) == 124 and find(text, '|', at + 67, true)
	local stop = bar and find(text, '|', bar + 1, true)
	if marked > 0 or words ~= '' or not stop or byte(text, stop + 1) ~= 112 or
		sub(text, -4, -2) ~= '|1|' then
		return settle_whole(text, words, reply, ttl, result)
	end
	local id = sub(text, bar + 1, stop - 1)
	if find(id, '[~/]') then
		return settle_whole(text, words, reply, ttl, result)
	end
	local lane = lane_of(sub(text, at + 33, bar - 1))
	local family = lane.family
	if not family then
		family = family_of(sub(text, at, at + 31))
		lane.family = family
	end
	lane.use = lane.use - 1
	if not lane.missing then
		local budget = budget_of(lane.tail.budget)
		budget.flight = budget.flight - 1
	end
	finish(id, false, false)
	result_out(id, reply, ttl, result)
	return lane, false
end

local settled, settled_n = {}, 0 -- lanes, each once

local function settle_all(names, n, got)
	problems, settled_n = {}, 0
	for i = 1, n do
		local at = 6 * i
		local slot, q, text = names[i], argv[at], got[i + 1]
		local ttl = number_at(at + 3, 'result_ttl')
		if plan.freed[slot] or not lease_carries(text, q) then
			problem(slot, 'TOKEN', not plan.freed[slot] and text)
		else
			plan.freed[slot] = true
			local lane, ended = settle_one(text, #q, argv[at + 1], argv[at + 2], ttl,
				argv[at + 4])
			if ended then
				problem(slot, 'ENDED')
			end
			if not lane.settled then
				lane.settled = true
				settled_n = settled_n + 1
				settled[settled_n] = lane
			end
		end
	end
end

-- `=N` for N: claims into the slots that end, in their order.  As if they were named.
local function slots_name()
	argv[4] = sub(argv[4], 2)
	local n = number_at(4, 'count', 1000)
	if argc ~= 6 * n + 5 then
		refuse('count', '"=' .. argv[4] .. '" is followed by so many jobs, q, and no slot')
	end
	for i = 1, n do
		argv[argc + i] = argv[6 * i - 1]
	end
	argc = argc + n
end

-- settle nonce c N (slot q usage reply result_ttl result)*N q slot…
-- settle nonce c =N (slot q usage reply result_ttl result)*N q
local function settle()
	local answer = settle_swift()
	if answer then
		return answer
	end
	if byte(text_at(4, 'count'), 1) == 61 then -- '='
		slots_name()
	end
	local name, n = lease_key(), number_at(4, 'count', 1000)
	local first = 6 * n + 6 -- of the slots to claim into; their q stands before
	if argc < first - 2 then
		refuse('count', 'announces more jobs than there are')
	end
	local q = argc >= first - 1 and number_at(first - 1, 'q') or 0
	local names, same = {}, argc - first + 1 == n
	for i = 1, n do
		names[i] = argv[6 * i - 1]
		same = same and names[i] == argv[first + i - 1]
	end
	local shift = first - 2 -- slot argv[i] is got[i - shift]
	local asked = n
	if not same then
		shift = shift - n
		for i = first, argc do
			asked = asked + 1
			names[asked] = argv[i]
		end
	end
	local session, got = session_read(name, names, asked)
	if not session then
		return got
	end
	book_open()
	marked = call('HLEN', key.ended)
	plan.freed = {}
	settle_all(names, n, got)
	local refused = plan.take_slots(first, q, function(i)
		return not plan.freed[argv[i]] and got[i - shift]
	end)
	local sleep_ms, idle = plan.make(session, name, settled, settled_n)
	for i = 1, plan.puts_n, 2 do
		plan.freed[plan.puts[i]] = nil -- overwritten
	end
	for i = 1, n do
		if plan.freed[names[i]] then
			slot_free(name, names[i])
			plan.freed[names[i]] = nil
		end
	end
	book_check()

	book_store()
	plan.store(idle)
	deliver()
	return plan.answer(sleep_ms, refused, problems)
end

-- begin nonce c (slot q usage)…
local function begin()
	local nonce = nonce_at(2)
	local name = key.ns .. 'lease:' .. nonce
	local names = {}
	for i = 4, argc, 3 do
		names[#names + 1] = slot_at(i)
		text_at(i + 2, 'usage')
	end
	local session, got = session_read(name, names, #names)
	if not session then
		return got
	end
	problems = {}
	local marks = { 'HSET', name }
	for i = 1, #names do
		local at, text = 3 * i + 1, got[i + 1]
		if lease_carries(text, argv[at + 1]) then
			local lease = lease_parse(text)
			local lane, words = lane_of(lease.lane), argv[at + 2]
			if find('lct', lease.role, 1, true) and not lease.begun then
				marks[#marks + 1] = names[i]
				marks[#marks + 1] = gsub(text, '|[lct]|', string.upper, 1)
			end
			usage.touch(lease, lane, usage.parse(words))
			say('began ' .. lease.lane .. ' ' .. lease.family .. ' ' .. format('%d', lease.g) ..
				' ' .. lease.role .. ' ' .. usage.words(words))
		else
			problem(names[i], 'TOKEN', text)
		end
	end
	book_check()

	book_store()
	if marks[3] then
		call(unpack(marks))
	end
	deliver()
	return { 'OK', now, unpack(problems) }
end

-- ---- late --------------------------------------------------------------------------

-- The ids that somebody else than `dead` leases right now, of those in `wanted`.
function job.leased_among(wanted, dead)
	local leased = {}
	for _, set in ipairs({ key.workers, key.dying }) do
		local nonces = call('ZRANGE', set, 0, -1)
		for i = 1, #nonces do
			local rows = nonces[i] ~= dead and table_read(key.ns .. 'lease:' .. nonces[i]) or {}
			for j = 1, #rows do
				local id = lease_parse(rows[j][2]).id
				if wanted[id] then
					leased[id] = true
				end
			end
		end
	end
	return leased
end

-- Whether the inbox has handed this id over already; who has not been admitted stands in
-- no list and needs no mark.  n 0: all jobs of that entry.
function job.is_admitted(id)
	local entry, n = match(call('HGET', key.meta, 'cursor') or '0-0 0', '^(%S+) (%d+)$')
	if not entry then
		return false
	end
	local ms, seq, part = id_split(id)
	local at_ms, at_seq = id_split(entry)
	if ms ~= at_ms then
		return ms < at_ms
	end
	if seq ~= at_seq then
		return seq < at_seq
	end
	return n == '0' or (part > 0 and part <= n + 0)
end

-- 'entry', 'slim', or nil if the job is not alive.
function job.payload_kind(id)
	if call('EXISTS', key.ns .. 'slim:' .. id) == 1 then
		return 'slim'
	end
	return payload.entry(id) and 'entry'
end

-- Somebody deleted the cursor, or wrote it by hand: who has been admitted nobody knows.
local function cursor_is_lost()
	local cursor = call('HGET', key.meta, 'cursor')
	if cursor then
		return not find(cursor, '^%d+%-%d+ %d+$')
	end
	return call('EXISTS', key.lanes) == 1
end

-- Ends a waiting job from outside: its payload goes now; if it stands in a list, a mark is
-- left for whoever meets it there; if it may be on its way into one, a mark for `admit`;
-- both where nobody knows.
function job.end_waiting(id, slim, reason)
	if call('ZSCORE', key.later, id) then
		finish(id, slim, true)
		family_count(past_of(id).family, -1)
		set_del(key.later, id)
	else
		finish(id, slim, false) -- its history goes with the mark
		local is_admitted = job.is_admitted(id)
		if is_admitted or cursor_is_lost() then
			note('marks_new', id, reason)
		end
		if not is_admitted then
			early.note(id)
		end
	end
end

-- Whether the job of a result that was refused was ended by another run: its result is kept
-- by id, and is not this one.  Of one that went to a reply list nobody can tell.
local function is_of_another(id, reply, result)
	local there = reply == '' and call('GET', key.ns .. 'result:' .. id)
	return there and there ~= result
end

-- What a late result has cost, once per attempt: `attempt` is "lane family role token".  A
-- token with a question mark: its settle may have been run, and said all this, unless it is
-- `sure` that it was not.
local function late_spend(attempt, why, words, sure)
	local lane, family, role, doubt, token =
		match(attempt, '^(%x+%.%d+) (%x*) (%a) (%??)([%w.]+)$')
	if doubt == '?' and why ~= 'accepted' and not sure then
		return
	end
	local fresh = lane and #token <= 64 and
		quiet('SET', key.ns .. 'paid:' .. token, '1', 'NX', 'PX', DAY)
	if not fresh or fresh.err then
		return
	end
	usage.spend({ lane = lane, family = family, role = role, g = 0 }, why, words)
end

-- settle_late (id reply result_ttl result)…
-- settle_late usage (id reply result_ttl result attempt usage)…
-- settle_late of nonce …      what a dead session still leases is nobody's
local function settle_late()
	local wanted = {}
	local first, width, dead = 2, 4, nil
	if argv[first] == 'of' then
		first, dead = 4, nonce_at(3)
	end
	if argv[first] == 'usage' then
		first, width = first + 1, 6
	end
	for i = first, argc, width do
		if not is_job(argv[i]) then
			refuse('id', 'expected a job id, got "' .. sub(argv[i], 1, 40) .. '"')
		end
		number_at(i + 2, 'result_ttl')
		text_at(i + width - 1, width == 6 and 'usage' or 'result')
		wanted[argv[i]] = true
	end
	local leased = job.leased_among(wanted, dead)
	local answer, sure = { 'OK', now }, {}
	for i = first, argc, width do
		local id = argv[i]
		local elsewhere = leased[id] or call('ZSCORE', key.dead, id)
		local kind = not elsewhere and job.payload_kind(id)
		if kind then
			leased[id] = true -- once
			job.end_waiting(id, kind == 'slim', 'done')
			result_out(id, argv[i + 1], argv[i + 2] + 0, argv[i + 3])
		end
		answer[#answer + 1] = kind and 'OK' or 'FENCED'
		-- A doubtful one of a job that has ended: most likely its own settle was run.
		sure[i] = kind or elsewhere or is_of_another(id, argv[i + 1], argv[i + 3])
		if sure[i] or width == 4 or not find(argv[i + 4], '?', 1, true) then
			count(kind and 'late_accepted' or 'late_refused')
		end
	end
	book_check()

	book_store()
	for i = first, width == 6 and argc or 0, width do
		local word = answer[3 + (i - first) / width]
		late_spend(argv[i + 4], word == 'OK' and 'accepted' or 'late', argv[i + 5], sure[i])
	end
	deliver()
	return answer
end

register('settle', settle, true)
register('begin', begin)
register('settle_late', settle_late)

end
