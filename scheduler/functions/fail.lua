-- fail.lua - leases that end without a result: fail, release.
--
--   retry    a real failure          attempts + 1; back or later; at the limit dead
--   defer    429, overload           deferrals + 1, never an attempt; the budget parks
--   fatal                            dead; if it was refused the tokens are returned
--   unfit    fatal, and not sent     dead; nobody has refused it, the estimate is returned
--   missing  payload not found       dead, unless it is there after all, or has a result
--   unsent   nothing went out        back; the credit and the estimate are returned; the
--                                    answer says how many requests the account may have
--
-- A deferred job returns to its queue, where its parked budget holds it, not to `later`:
-- so nobody wakes up in a storm.  Only from its third deferral on it waits by itself.

do

local DEFER_MAX = DAY -- so long a job may be deferred before it is dead
local DEFER_FREE = 2 -- deferrals without a wait of one's own

local function defer_wait(past, delay)
	if past.deferrals <= DEFER_FREE then
		return 0
	end
	return max(delay, min(60000, 1000 * 2 ^ min(past.deferrals - DEFER_FREE - 1, 6)))
end

-- Where a failed job goes: a word, and how long it waits there.
local function fail_where(kind, past, attempts_max, delay)
	if kind == 'fatal' or kind == 'unfit' then
		return 'dead'
	elseif kind == 'retry' then
		past.attempts = past.attempts + 1
		if past.attempts >= attempts_max then
			return 'dead'
		end
	else
		past.deferrals = past.deferrals + 1
		if past.deferred_at == 0 then
			past.deferred_at = now
		elseif now - past.deferred_at > DEFER_MAX then
			return 'dead'
		end
		delay = kind == 'defer' and defer_wait(past, delay) or delay
	end
	return delay > 0 and 'later' or 'back', delay
end

-- In `meta`: what came back alive, by why.
local COUNTERS = { retry = 'retried', defer = 'deferred', unsent = 'unsent' }

local WHY = { retry = 'failed', defer = 'deferred', fatal = 'dead', unfit = 'missing',
	missing = 'missing', unsent = 'unsent' }

-- The payload the worker did not find.  It is there: then this was a failure like others.
local function fail_missing(lease)
	return job.payload_kind(lease.id) == (lease.slim and 'slim' or 'entry')
end

local function fail_job(lease, lane, kind, attempts_max, delay, reason, text)
	if job.is_ended(lease.id) then
		job.drop_ended(lease)
		return 'ended'
	end
	if kind == 'missing' then
		kind = fail_missing(lease) and 'retry' or kind
	end
	if kind == 'missing' and call('EXISTS', key.ns .. 'result:' .. lease.id) == 1 then
		-- It has ended: somebody has brought its id back into a list, as by a RESTORE.
		note('pasts_gone', key.ns .. 'past:' .. lease.id)
		job.say_back(lease, 'dropped')
		return 'ended'
	end
	local why = WHY[kind]
	local past = job.past_take(lease)
	past.why = sub(text, 1, 1000) -- who is placed anew waits for nothing: before that
	local where = 'dead'
	if kind == 'missing' then
		reason = 'payload_missing'
		if lease.slim then
			payload.new_slim(lease.id, '')
		end
		bury(past, lease.id, lease.slim, reason, text)
	else
		local wait
		where, wait = fail_where(kind, past, attempts_max, delay)
		if where == 'dead' then
			bury(past, lease.id, lease.slim, kind == 'defer' and 'deferred' or
				kind == 'unsent' and 'unsent' or reason ~= '' and reason or 'failed', text)
			why = kind == 'retry' and 'exhausted' or why -- only `fatal` was refused
		else
			count(COUNTERS[kind])
		end
		if where == 'later' then
			if job.home(past, lane) then
				job.push_later(past, now + wait, kind)
			end
		elseif where == 'back' then
			job.push_back(past, lane)
		end
	end
	job.say_back(lease, why)
	return where
end

-- How many requests at a time the account of a lane may have now; 0: no bound is known.
local function budget_pace(lane)
	return lane.tail.budget == '' and 0 or budget_of(lane.tail.budget).pace
end

local KINDS = { retry = 'none', defer = 'tokens', fatal = 'none', missing = 'all',
	unsent = 'all' }

-- fail nonce c slot q kind attempts_max delay_ms park_ms reason text usage reply
--      result_ttl result
local function fail()
	local nonce, slot, q = nonce_at(2), slot_at(4), text_at(5, 'q')
	local kind, attempts_max = text_at(6, 'kind'), number_at(7, 'attempts_max')
	local delay, park = number_at(8, 'delay_ms'), number_at(9, 'park_ms')
	local reason, text, words = text_at(10, 'reason'), text_at(11, 'text'), text_at(12, 'usage')
	local reply, ttl, result = text_at(13, 'reply'), number_at(14, 'result_ttl'),
		text_at(15, 'result')
	local refund, used = KINDS[kind], usage.parse(words)
	if not refund then
		refuse('kind', 'expected retry, defer, fatal, missing or unsent')
	end
	if kind == 'fatal' and not used.sent then
		kind, refund = 'unfit', 'all'
	elseif kind == 'fatal' and not usage.is_spent(used, words) then
		refund = 'tokens'
	end
	local name = key.ns .. 'lease:' .. nonce
	local session, got = session_read(name, { slot }, 1)
	if not session then
		return got
	end
	if not lease_carries(got[2], q) then
		return { 'TOKEN', got[2] or '' }
	end
	marked = call('HLEN', key.ended)
	local lease = lease_parse(got[2])
	local lane = lease_drop(lease, refund ~= 'none' and refund, kind == 'unsent')
	usage.spend(lease, WHY[kind], words)
	usage.touch(lease, lane, used)
	if refund == 'none' then
		usage.correct(lease, lane, used)
	end
	if park > 0 and lane.tail.budget ~= '' then
		local budget = budget_of(lane.tail.budget)
		if kind == 'defer' then -- else one worker that reaches nobody would stop them all
			budget.parked = max(budget.parked, now + park)
		end
		say('pressure ' .. lane.tail.budget .. ' ' .. (match(reason, '^%w+$') and reason or kind) ..
			' ' .. format('%d', max(budget.parked, now)))
	end
	local what = 'ticket'
	if lease.role == 't' then
		-- One that no worker can make is asked for no more, as one that was refused.
		ticket.finish(lease, lane, 4, kind == 'unfit' and 'dead' or WHY[kind])
	else
		what = fail_job(lease, lane, kind, attempts_max, delay, reason, text)
	end
	slot_free(name, slot)
	local pace = kind == 'unsent' and budget_pace(lane) or nil
	book_check()
	if what == 'dead' then
		result_out(lease.id, reply, ttl, result ~= '' and result or
			end_result(lease.id, 'dead', reason, text))
	end

	book_store()
	deliver()
	return { 'OK', now, what, pace }
end

-- release nonce c (slot q sent)…     sent: 0, 1, or 1 and behind a blank a usage
local function release()
	local nonce = nonce_at(2)
	local name = key.ns .. 'lease:' .. nonce
	local names = {}
	for i = 4, argc, 3 do
		names[#names + 1] = slot_at(i)
		if not find(text_at(i + 2, 'sent'), '^[01]$') and not find(argv[i + 2], '^1 ') then
			refuse('sent', 'expected 0, 1, or 1 and a usage')
		end
	end
	local session, got = session_read(name, names, #names)
	if not session then
		return got
	end
	problems = {}
	local rows, sent, seen, words = {}, {}, {}, {}
	for i = 1, #names do
		local at, text = 3 * i + 1, got[i + 1]
		if lease_carries(text, argv[at + 1]) and not seen[names[i]] then
			rows[#rows + 1] = { names[i], text }
			sent[names[i]] = argv[at + 2] ~= '0'
			words[names[i]] = sub(argv[at + 2], 3)
			seen[names[i]] = true
		else
			problem(names[i], 'TOKEN', text)
		end
	end
	sessions.empty(name, rows, function(lease)
		local was = job.is_ended(lease.id)
		usage.spend(lease, was and 'dropped' or 'released', words[lease.slot])
		sessions.release(lease, sent[lease.slot], 'released')
		if was then
			problem(lease.slot, 'ENDED')
		end
	end)
	book_check()

	book_store()
	deliver()
	return { 'OK', now, unpack(problems) }
end

register('fail', fail)
register('release', release)

end
