-- swift.lua - the usual settle: plain jobs of one lane end, as many start in their slots.
--
--   from the same lane     nothing changes but payloads, slots and the front of a list
--   from another lane      the same, and what is in use moves from one lane to the other
--
-- What is in flight, the bits and the memberships stay as they are, so nothing has to be
-- counted down and up again.  Every condition is looked at first; where one does not hold
-- nothing has been written, and settle.lua goes the long way.  Both ways give the same
-- answer and leave the same keys: a test plays one against the other.
--
-- The jobs that end: first deliveries, plain, without usage, of one lane.  The lane the
-- next ones come from is the best open one, and simple: only fresh jobs of one band wait,
-- nothing above it gates, nothing is marked (its score is a whole number then, see
-- lane_score).  Its gate is open, and no credit, ticket or first event is wanted.  `look`
-- is absent: nobody has ended from outside, no budget is parked, over its pace, limited or
-- asks for a first event.
--
-- All that stays true until something else is written: every other call that writes moves
-- the stamp (store.lua).  So what was found, the verdict, is remembered with the stamp it
-- was found under, and while that stands one GET is all there is to look at.  The stamp
-- moves by uneven steps, so that two histories (a failover, and back) do not meet at the
-- same number.

local settle_single, settle_batch
do

-- ---- the verdict: where the next job of a session comes from -----------------------

-- The best member over all budgets of the session: id, score.
local function best_open(session)
	local names = session_budgets(session)
	local best, best_score
	for i = 1, #names do
		local open = key.ns .. 'open:' .. session.pool .. ':' .. names[i]
		local head = call('ZRANGE', open, '0', '0', 'WITHSCORES')
		local score = head[2]
		if score and (not best or score + 0 < best_score) then
			best, best_score = head[1], score + 0
		end
	end
	return best, best_score
end

-- True if the lane may start plain jobs until something is written or a time comes.  One
-- that is open because holding was off (55) may be shut by a switch.
local function is_calm(rec, session)
	return rec and byte(rec, 1) == 49 and byte(rec, 97) == 124 and byte(rec, 2) >= 51 and
		byte(rec, 3) ~= 55 and
		sub(rec, 14, 16) == '000' and byte(rec, 68) ~= 49 and
		lane_tail(rec).pool == session.pool
end

local function verdict_new(session, stamp)
	local lane_id, score = best_open(session)
	local band = lane_id and floor(score / 1000000000) or 0
	local rec = band >= 1 and score % 1 == 0 and call('HGET', key.lanes, lane_id)
	if not is_calm(rec, session) then
		return nil
	end
	local tail, g, p = lane_tail(rec), sub(rec, 4, 13) + 0, sub(rec, 50, 57) + 0
	local begin = sub(rec, 58, 67) + 0 > 0 and sub(rec, 83, 96) + 0 or NEVER
	local home = '|' .. tail.family .. '|' .. lane_id .. '|'
	return { stamp = stamp, id = lane_id, home = home, size = #home,
		till = min(sub(rec, 36, 49) + 0, begin), budget = tail.budget,
		role = '|p|' .. format('%d', g) .. '|0,0|', behind = '|1|' .. LETTER[band],
		list = key.ns .. READY[band][1] .. tail.family,
		run = ' 0\n\n\n' .. lane_id .. ' ' .. tail.family .. ' p ' .. format('%d', g) .. ' ' ..
			(tail.px == '' and '-' or tail.px) .. ' 0 0 0 ' .. format('%d', p) .. ' ' }
end

-- The verdict that stands, or a new one; nil if something is unusual.
local function verdict_of(session)
	local stamp, verdict = call('GET', key.stamp), session.verdict
	if not verdict or verdict.stamp ~= stamp or now >= verdict.till then
		if call('EXISTS', key.look) == 1 then
			return nil
		end
		verdict = verdict_new(session, stamp)
		session.verdict = stamp and verdict -- without a stamp nothing can be remembered
		if not verdict or now >= verdict.till then
			return nil
		end
	end
	return verdict
end

-- ---- from one lane to another ------------------------------------------------------

local function column(rec, at)
	local a, b, c, d, e = byte(rec, at, at + 4)
	return (a - 48) * 10000 + (b - 48) * 1000 + (c - 48) * 100 + (d - 48) * 10 + e - 48
end

-- Records of both lanes with n jobs moved; nil if the window of either may decide where it
-- belongs, before or after.
local function recs_moved(verdict, settled_id, n)
	local got = call('HMGET', key.lanes, verdict.id, settled_id)
	local rec, settled = got[1], got[2]
	if not rec or not settled or #rec < 97 or #settled < 97 or byte(settled, 1) ~= 49 then
		return nil
	end
	local use, settled_use = column(rec, 18), column(settled, 18)
	if use + n >= column(rec, 23) or settled_use < n or
		settled_use >= column(settled, 23) or lane_tail(settled).budget ~= verdict.budget then
		return nil
	end
	return put(rec, 18, 22, use + n), put(settled, 18, 22, settled_use - n)
end

-- The payload of a job that has ended.  If the inbox itself is of a wrong type there is
-- nothing to delete, and nothing else may fail for that.
local function entry_delete(id)
	local gone = quiet('XDEL', key.jobs, id)
	if type(gone) == 'table' then
		count('function_errors')
		announce()
	end
end

-- ---- one job -----------------------------------------------------------------------

-- The job of a plain first delivery under token q whose lane is the verdict's.
local function job_here(verdict, lease, q)
	local at = #q + 1
	if find(lease, q, 1, true) ~= 1 or find(lease, verdict.home, at, true) ~= at then
		return nil
	end
	local before, delivery, behind = byte(lease, -4, -2)
	return before == 124 and delivery == 49 and behind == 124 and
		match(lease, '^([%d-]+)|p|', at + verdict.size)
end

-- The same for any lane; and where its lane id begins and ends.
local function job_anywhere(lease, q)
	local at = #q + 2
	if find(lease, q .. '|', 1, true) ~= 1 or byte(lease, at + 32) ~= 124 then
		return nil
	end
	local bar = find(lease, '|', at + 67, true)
	local before, delivery, behind = byte(lease, -4, -2)
	if not bar or before ~= 124 or delivery ~= 49 or behind ~= 124 then
		return nil
	end
	return match(lease, '^([%d-]+)|p|', bar + 1), at + 33, bar - 1
end

-- argv: 1 nonce c 1 slot q usage reply result_ttl result q slot, the two slots the same.
-- Answers nil if something is not as usual; nothing has changed then.  The first write
-- takes the next job, by pcall: where there is none, or no list, nothing has happened.  If
-- it was the last one, its bit stays set until somebody looks.
function settle_single()
	local name = memo.lease[argv[2]]
	local got = name and argv[7] == '' and call('HMGET', name, 's', argv[5])
	local session, lease = got and memo.session[got[1]], got and got[2]
	local reply = reply_key(argv[8])
	if not session or session.c ~= argv[3] or not lease or not reply or
		not find(argv[11], '^%d+$') or not find(argv[9], '^%d+$') then
		return nil
	end
	local verdict = verdict_of(session)
	local id = verdict and job_here(verdict, lease, argv[6])
	local rec, settled_rec, settled_id
	if verdict and not id then
		local from, to
		id, from, to = job_anywhere(lease, argv[6])
		settled_id = id and sub(lease, from, to)
		if settled_id then
			rec, settled_rec = recs_moved(verdict, settled_id, 1)
		end
		id = rec and id
	end
	local element = id and quiet('LPOP', verdict.list)
	if type(element) ~= 'string' then
		return nil
	end
	entry_delete(id)
	if rec then
		call('HSET', key.lanes, verdict.id, rec, settled_id, settled_rec)
	end
	call('HSET', name, argv[5], argv[11] .. verdict.home .. element .. verdict.role ..
		ends_text(session) .. verdict.behind)
	if not reply_one(reply, argv[9], argv[10]) then
		count('delivery_errors')
		result_keep(id, argv[9], argv[10])
		announce()
	end
	return 'OK ' .. now_text() .. verdict.run .. element
end

-- ---- a batch -----------------------------------------------------------------------

-- The jobs of n leases, if they are plain first deliveries of the lane of the first one;
-- and its id.
local function jobs_anywhere(n, got)
	local first = got[2]
	local id, from, to = nil, nil, nil
	if first then
		id, from, to = job_anywhere(first, argv[6])
	end
	if not id then
		return nil
	end
	local ids, seen = { id }, { [id] = true }
	local home = sub(first, #argv[6] + 1, to + 1) -- "|family|lane|"
	local size = #home
	for i = 2, n do
		local q, lease = argv[6 * i], got[i + 1]
		local at = #q + 1
		if not lease or find(lease, q, 1, true) ~= 1 or find(lease, home, at, true) ~= at or
			sub(lease, -4, -2) ~= '|1|' then
			return nil
		end
		id = match(lease, '^([%d-]+)|p|', at + size)
		if not id or seen[id] then
			return nil
		end
		ids[i], seen[id] = id, true
	end
	return ids, sub(first, from, to)
end

-- Their results, if all go to one list and say nothing of usage.
local function results_take(n)
	local values, reply, ttl = {}, argv[8], argv[9]
	for i = 1, n do
		if argv[6 * i + 1] ~= '' or argv[6 * i + 2] ~= reply or argv[6 * i + 3] ~= ttl then
			return nil
		end
		values[i] = argv[6 * i + 4]
	end
	return find(ttl, '^%d+$') and values
end

-- As settle_single, for n jobs.
function settle_batch(session, name, n, q, got)
	local values = results_take(n)
	local ids, settled_id
	if values then
		ids, settled_id = jobs_anywhere(n, got)
	end
	local verdict = ids and verdict_of(session)
	if not verdict then
		return nil
	end
	local rec, settled_rec
	if settled_id ~= verdict.id then
		rec, settled_rec = recs_moved(verdict, settled_id, n)
		if not rec then
			return nil
		end
	end
	local items = call('LRANGE', verdict.list, '0', number_text(n))
	if #items <= n then
		return nil -- the list would run empty: that is news
	end
	local args = {}
	local tail = verdict.role .. ends_text(session) .. verdict.behind
	for i = 1, n do
		args[2 * i - 1] = argv[6 * i - 1]
		args[2 * i] = number_text(q + i - 1) .. verdict.home .. items[i] .. tail
	end

	call('XDEL', key.jobs, unpack(ids))
	if rec then
		call('HSET', key.lanes, verdict.id, rec, settled_id, settled_rec)
	end
	call('HSET', name, unpack(args))
	call('LTRIM', verdict.list, number_text(n), '-1')
	reply_push(argv[8], argv[9], values, ids, n)
	announce()
	return 'OK ' .. now_text() .. verdict.run .. concat(items, ' ', 1, n)
end

end
