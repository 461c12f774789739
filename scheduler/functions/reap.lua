-- reap.lua - the tick: dead sessions, overdue leases and tickets, due and late jobs.
--
-- A session whose deadline has passed goes to `dying` with the first of its leases (all
-- its calls answer GONE from then on); the leases are returned in chunks, sorted by id;
-- its table goes last.
--
-- Redis's own absence is not a worker's fault: if the clock jumped, or nobody ticked for
-- so long that a live worker could have missed its beat, nothing is reaped for one lease
-- (`reap_hold`), and what expired within it counts no recovery.  If the clock went back,
-- what counts from then on is brought along.

local owner_check
do

function owner_check()
	local owner = call('HGET', key.meta, 'owner')
	if owner ~= argv[2] then
		return { 'EPOCH', owner or '' }
	end
end

-- ---- reap --------------------------------------------------------------------------

-- Cuts deadlines from beyond the longest possible one: a clock that ran ahead wrote them.
local function deadlines_cut(lease_ms)
	local most = now + lease_ms
	local far = call('ZRANGEBYSCORE', key.workers, '(' .. format('%d', most), '+inf')
	for i = 1, #far do
		call('ZADD', key.workers, most, far[i])
	end
end

local LATER_MAX = 10000 -- the nearest ones: retries are due within minutes

-- The clock went back by `ms`, as when a machine with another one takes over.  What was
-- written as "so long from now" would last for so much longer: it moves along.  Times that
-- somebody has named (not_before, deadline) stay as they are.
local function times_move(ms)
	local pools = call('HGETALL', key.pools)
	for i = 1, #pools, 2 do
		local names = list_of(pools[i + 1])
		for j = 1, #names do
			local budget = budget_of(names[j])
			local held = key.ns .. 'held:' .. pools[i] .. ':' .. names[j]
			local rows = call('ZRANGE', held, 0, -1, 'WITHSCORES')
			budget.parked = max(0, budget.parked - ms)
			budget.blocked = max(0, budget.blocked - ms)
			pacing.move(budget, 0, 0, 0)
			for k = 1, #rows, 2 do
				set_add(held, format('%d', max(0, rows[k + 1] - ms)), rows[k])
			end
		end
	end
	local rows = call('ZRANGEBYSCORE', key.later, '(' .. format('%d', now), '+inf',
		'WITHSCORES', 'LIMIT', 0, LATER_MAX)
	for i = 1, #rows, 2 do
		local reason = call('HGET', key.ns .. 'past:' .. rows[i], 'reason')
		if reason and reason ~= 'delayed' then
			set_add(key.later, format('%d', rows[i + 1] - ms), rows[i])
		end
	end
	call('HLEN', key.idle)
	book_check()

	book_store()
	call('DEL', key.idle) -- how long slots have been free: it is found anew
end

local function lease_overdue(lease)
	job.give_back_recovered(lease, lease_drop(lease, nil, true), 'overdue', true)
end

-- Returns up to `chunk` leases of one dying session; answers how many, and whether its
-- table is empty then.
local function session_bury(nonce, chunk, counts)
	local name = key.ns .. 'lease:' .. nonce
	local rows = table_read(name)
	local all = #rows
	sort(rows, function(a, b)
		return id_before(match(a[2], '|(%d+%-[%d.]+)[^|]*|%a|') or '', match(b[2],
			'|(%d+%-[%d.]+)[^|]*|%a|') or '')
	end)
	for i = chunk + 1, all do
		rows[i] = nil
	end
	sessions.empty(name, rows, function(lease)
		job.give_back_recovered(lease, lease_drop(lease, nil, true), 'worker_died', counts)
	end)
	return #rows, #rows == all
end

-- Live sessions are bound by the hard end of each lease.
local function overdue_leases(chunk)
	local nonces = call('ZRANGEBYSCORE', key.ends, '-inf', now, 'LIMIT', 0, 4)
	local returned, later = 0, {}
	for i = 1, #nonces do
		local name = key.ns .. 'lease:' .. nonces[i]
		local rows, over = table_read(name), {}
		local ends = NEVER
		for j = 1, #rows do
			local lease = lease_parse(rows[j][2])
			if lease.ends <= now and #over < chunk then
				over[#over + 1] = rows[j]
			else
				ends = min(ends, lease.ends)
			end
		end
		sessions.empty(name, over, lease_overdue)
		returned = returned + #over
		later[i] = { nonces[i], ends }
	end
	return returned, later
end

-- The lease of a taken ticket, as its table has it: name, slot, text.  Nil if it is gone.
local function ticket_lease(lane)
	local nonce, slot, q = match(lane.tail.ticket, '^(%x+),(%d+),(%d+)$')
	local name = nonce and key.ns .. 'lease:' .. nonce
	local row = name and call('HGET', name, slot)
	if row and lease_carries(row, q) then
		return name, { slot, row }
	end
end

-- Wanted and not taken in time: failed.  Taken: the lease goes with it, for as long as
-- somebody holds it he may be writing.
local function overdue_tickets()
	local ids = call('ZRANGEBYSCORE', key.tickets, '-inf', now, 'LIMIT', 0, 100)
	for i = 1, #ids do
		local lane = lane_of(ids[i])
		local state = byte(lane.rec, 68)
		lane_join(lane)
		set_del(key.tickets, ids[i])
		local name, row
		if state == 50 then
			name, row = ticket_lease(lane)
		end
		if row then
			sessions.empty(name, { row }, lease_overdue)
		elseif not lane.missing and (state == 49 or state == 50) then
			local tail, g = lane.tail, sub(lane.rec, 4, 13)
			lane.rec = lane_print(sub(lane.rec, 1, 67) .. '4' .. sub(lane.rec, 69, 96),
				tail.pool, tail.budget, tail.family, tail.px, 'failed,overdue')
			lane.tail = lane_tail(lane.rec)
			say('ticket ' .. ids[i] .. ' ' .. format('%d', g) .. ' failed overdue')
		end
	end
end

-- Plans the end of sessions whose deadline has passed, those first that are dying already.
-- Answers how many leases go back, and what becomes of each session: { nonce, deadline,
-- empty }.
local function reap_plan(chunk, hold)
	local rows = call('ZRANGE', key.dying, 0, 63, 'WITHSCORES')
	local late = call('ZRANGEBYSCORE', key.workers, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1000)
	for i = 1, #late do
		rows[#rows + 1] = late[i]
	end
	local returned, ending = 0, {}
	for i = 1, #rows, 2 do
		local nonce, deadline, empty = rows[i], rows[i + 1] + 0, false
		if returned < chunk then
			local got
			got, empty = session_bury(nonce, chunk - returned, deadline > hold)
			returned = returned + got
		end
		ending[#ending + 1] = { nonce, deadline, empty }
	end
	return returned, ending
end

-- Dying sessions lose their `s`: what they say from here on is not heard.  Answers whether
-- leases are left.
local function reap_store(ending)
	local more = false
	for i = 1, #ending do
		local nonce = ending[i][1]
		if ending[i][3] then
			sessions.forget(nonce)
			say('bye ' .. nonce)
		else
			call('ZADD', key.dying, ending[i][2], nonce)
			call('ZREM', key.workers, nonce)
			call('HDEL', key.ns .. 'lease:' .. nonce, 's')
			recall.forget(key.ns .. 'lease:' .. nonce)
			more = true
		end
	end
	return more
end

-- reap owner lease_ms beat_ms chunk
local function reap()
	local refused = owner_check()
	local lease_ms, beat_ms = number_at(3, 'lease_ms', DAY), number_at(4, 'beat_ms', DAY)
	local chunk = max(1, number_at(5, 'chunk', 1000))
	if refused then
		return refused
	end
	local got = call('HMGET', key.meta, 'tick', 'reap_hold')
	local tick, hold = got[1], (got[2] or 0) + 0
	local gap = tick and now - tick or (call('ZCARD', key.workers) > 0 and NEVER or 0)
	sessions.check()
	call('ZCARD', key.tickets)
	marked, level = call('HLEN', key.ended), true
	if gap < 0 or gap > lease_ms - beat_ms - 5000 then
		hold = now + lease_ms
		if gap < 0 then
			times_move(-gap)
		end
		call('HSET', key.meta, 'tick', format('%d', now), 'reap_hold', format('%d', hold))
		deadlines_cut(lease_ms)
		return { 'OK', now, 0, 0, hold }
	end
	if now < hold then
		call('HSET', key.meta, 'tick', format('%d', now))
		return { 'OK', now, 0, 0, hold }
	end
	local returned, ending = reap_plan(chunk, hold)
	local over, later = overdue_leases(chunk)
	overdue_tickets()
	book_check()

	book_store()
	local more = reap_store(ending)
	for i = 1, #later do
		if later[i][2] < NEVER then
			call('ZADD', key.ends, later[i][2], later[i][1])
		else
			call('ZREM', key.ends, later[i][1])
		end
	end
	call('HSET', key.meta, 'tick', format('%d', now))
	deliver()
	return { 'OK', now, returned + over, more and 1 or 0, 0 }
end

-- ---- promote -----------------------------------------------------------------------

-- The oldest due ones and the newest: a retry that falls due now does not wait behind a
-- million jobs that were due at midnight.
local function due_ids(most)
	local late = call('ZRANGEBYSCORE', key.later, '-inf', now, 'LIMIT', 0, most)
	if #late < most then
		return late
	end
	local newest = floor(most / 4)
	local ids, seen = {}, {}
	for i = 1, most - newest do
		ids[i], seen[late[i]] = late[i], true
	end
	local fresh = newest > 0 and
		call('ZREVRANGEBYSCORE', key.later, now, '-inf', 'LIMIT', 0, newest) or {}
	for i = 1, #fresh do
		if not seen[fresh[i]] then
			ids[#ids + 1] = fresh[i]
		end
	end
	return ids
end

local PREFIX_MS = 10000 -- so long a job waits for its named prefix
local LOOK_MS = 1000 -- so often somebody looks at first; then at twice the age

local prefixes -- name -> whether it is stored

local function prefix_is_there(name)
	if prefixes[name] == nil then
		prefixes[name] = call('EXISTS', key.ns .. 'prefix:' .. name) == 1
	end
	return prefixes[name]
end

-- The scheduler hears of a job once its prefix is there.  One that was misspelled in a
-- hundred thousand jobs costs nobody else anything: they are looked at ever more rarely,
-- and end here.  (Without a name in its payload the scheduler has to look itself.)
local function look_for_prefix(past, id)
	local born = id_ms(id)
	if past.why == '' or prefix_is_there(past.why) then
		say('undecided ' .. id)
	elseif now >= born + PREFIX_MS then
		local reply, ref, trace = payload.hints(id, true)
		local text = 'there is no named prefix "' .. past.why .. '", and none came for 10 s'
		set_del(key.later, id)
		bury(past, id, true, 'prefix_missing', text)
		result_out(id, reply, DAY, end_result(id, 'dead', 'prefix_missing', text, ref, trace))
		return
	end
	local due = max(now + LOOK_MS, min(born + PREFIX_MS, now + (now - born)))
	set_add(key.later, format('%d', due), id)
end

local function promote_one(id)
	local past = past_of(id)
	if past.family == '' and past.reason == 'undecided' then
		look_for_prefix(past, id)
		return
	end
	if past.family == '' or not (BAND[past.band] or past.now == '1') then
		set_del(key.later, id)
		job.bury_lost(past, id, 'its history was lost')
		return
	end
	local family = job.home(past)
	if not family then
		return
	end
	set_del(key.later, id)
	family_count(past.family, -1)
	if past.deliveries == 0 and past.recoveries == 0 then -- delayed, never started
		push(family, past.now == '1' and NOW or READY[BAND[past.band]], past.element)
		note('pasts_gone', past.key)
	else
		job.push_back(past)
	end
end

-- promote owner max
local function promote()
	local refused = owner_check()
	local most = max(1, number_at(3, 'max', 1000))
	if refused then
		return refused
	end
	level, prefixes = true, {}
	local ids = due_ids(most)
	for i = 1, #ids do
		promote_one(ids[i])
	end
	local next_due = now
	if #ids < most then
		local row = call('ZRANGEBYSCORE', key.later, '(' .. format('%d', now), '+inf',
			'WITHSCORES', 'LIMIT', 0, 1)
		next_due = row[2] and row[2] + 0 or 0
	end
	book_check()

	book_store()
	deliver()
	return { 'OK', now, #ids, next_due }
end

-- ---- expire ------------------------------------------------------------------------

-- Ends a waiting or running job from outside, with a result in place of its worker's.
function job.end_from_outside(id, kind, state)
	local reply, ref, trace = payload.hints(id, kind == 'slim')
	job.end_waiting(id, kind == 'slim', state)
	result_out(id, reply, DAY, end_result(id, state, state, '', ref, trace))
	say('ended ' .. id .. ' ' .. state)
end

-- expire owner max
local function expire()
	local refused = owner_check()
	local most = max(1, number_at(3, 'max', 1000))
	if refused then
		return refused
	end
	local ids = call('ZRANGEBYSCORE', key.deadline, '-inf', now, 'LIMIT', 0, most)
	local ended = 0
	for i = 1, #ids do
		local id = ids[i]
		local kind = not call('ZSCORE', key.dead, id) and job.payload_kind(id)
		set_del(key.deadline, id)
		if kind then
			job.end_from_outside(id, kind, 'expired')
			ended = ended + 1
		end
	end
	book_check()

	book_store()
	deliver()
	return { 'OK', now, ended }
end

register('reap', reap)
register('promote', promote)
register('expire', expire)

end
