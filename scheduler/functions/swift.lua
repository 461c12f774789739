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
-- The jobs that end: first deliveries, plain, without usage, of one lane.  The lane they
-- come from is the best open one, and simple: only fresh jobs of one band wait, nothing
-- above it gates, nothing is marked (its score is a whole number then, see lane_score).
-- Its gate is open, no credit, ticket or first event is wanted, its window has room, and
-- more jobs wait than are taken.  `look` is absent: nobody has ended from outside, no
-- budget is parked, over its pace, limited or asks for a first event.
--
-- Records of busy lanes repeat themselves: their views are remembered by their text.

local settle_single, settle_batch
do

local NOTHING_TO_SAY = {}
local ANSWER = { 'OK', 0, 0, NOTHING_TO_SAY, NOTHING_TO_SAY, {} }

-- What is needed of a lane's record; false if its gate is shut.
local function lane_view(rec)
	local view = memo.lane_view[rec]
	if view == nil then
		view = false
		if byte(rec, 1) == 49 and byte(rec, 97) == 124 and byte(rec, 2) >= 51 then
			local life = sub(rec, 58, 67) + 0
			view = { till = sub(rec, 36, 49) + 0, use = sub(rec, 18, 22) + 0,
				window = sub(rec, 23, 27) + 0, g = sub(rec, 4, 13) + 0, p = sub(rec, 50, 57) + 0,
				calm = sub(rec, 14, 16) == '000' and byte(rec, 68) ~= 49,
				begin = life > 0 and sub(rec, 83, 96) + 0 or NEVER, tail = lane_tail(rec),
				rec = rec, role = '|p|' .. format('%d', sub(rec, 4, 13)) .. '|0,0|' }
			view.run = { '', view.tail.family, 'p', view.g, view.tail.px, 0, 0, 0, view.p, '' }
		end
		memo_grow()
		memo.lane_view[rec] = view
	end
	return view
end

-- Key of the list that fresh jobs of a band wait in.
local function ready_key(family, band)
	local keys = memo.ready[band]
	local name = keys[family]
	if not name then
		name = key.ns .. READY[band][1] .. family
		memo_grow()
		memo.ready[band][family] = name
	end
	return name
end

-- The best member over all budgets of the session: id, score.
local function best_open(session)
	local names = session_budgets(session)
	local best, best_score
	for i = 1, #names do
		local open = session.opens[names[i]]
		if not open then
			open = key.ns .. 'open:' .. session.pool .. ':' .. names[i]
			session.opens[names[i]] = open
		end
		local head = call('ZRANGE', open, '0', '0', 'WITHSCORES')
		local score = head[2]
		if score and (not best or score + 0 < best_score) then
			best, best_score = head[1], score + 0
		end
	end
	return best, best_score
end

-- The lane that n jobs of another (or the same) lane give way to: its id, its view, the
-- view of the settled lane, and the band its jobs are of; nil if that is not clear.
local function source_of(session, n, settled_id)
	local id, score = best_open(session)
	local band = id and floor(score / 1000000000) or 0
	if band < 1 or score % 1 ~= 0 then
		return nil
	end
	local lane, settled
	if id == settled_id then
		lane = lane_view(call('HGET', key.lanes, id) or '')
		settled = lane
	else
		local recs = call('HMGET', key.lanes, id, settled_id)
		lane, settled = lane_view(recs[1] or ''), lane_view(recs[2] or '')
		-- The window of neither may decide where it belongs, before or after.
		if not lane or not settled or lane.use + n >= lane.window or settled.use < n or
			settled.use >= settled.window or settled.tail.budget ~= lane.tail.budget then
			return nil
		end
	end
	if lane and lane.calm and now < lane.till and now < lane.begin and
		lane.tail.pool == session.pool then
		return id, lane, settled, band
	end
end

local function lanes_move(id, lane, settled_id, settled, n)
	call('HSET', key.lanes, settled_id, put(settled.rec, 18, 22, settled.use - n), id,
		put(lane.rec, 18, 22, lane.use + n))
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

-- Of a plain first delivery under token q: the job, and where its lane id begins and ends.
local function lease_take(lease, q)
	local at = #q + 2
	if not lease or find(lease, q .. '|', 1, true) ~= 1 or byte(lease, at + 32) ~= 124 then
		return nil
	end
	local bar = byte(lease, at + 67) == 124 and at + 67 or find(lease, '|', at + 67, true)
	local before, count_of, behind = byte(lease, -4, -2)
	if not bar or before ~= 124 or count_of ~= 49 or behind ~= 124 then
		return nil -- not the first delivery
	end
	return match(lease, '^([%d-]+)|p|', bar + 1), at + 33, bar - 1
end

-- argv: 1 nonce c 1 slot q usage reply result_ttl result q slot, the two slots the same.
-- Answers nil if something is not as usual; nothing has changed then.  The first write
-- takes the next job, by pcall: where there is none, or no list, nothing has happened.  If
-- it was the last one, its bit stays set until somebody looks.
function settle_single()
	local name, slot = memo.lease[argv[2]], argv[5]
	local got = name and argv[7] == '' and call('HMGET', name, 's', slot)
	local session = got and memo.session[got[1]]
	if not session or session.c ~= argv[3] then
		return nil
	end
	local id, from, to = lease_take(got[2], argv[6])
	local reply, q = reply_key(argv[8]), argv[11]
	if not id or not reply or not find(q, '^%d+$') or not find(argv[9], '^%d+$') or
		call('EXISTS', key.look) == 1 then
		return nil
	end
	local settled_id = sub(got[2], from, to)
	local lane_id, lane, settled, band = source_of(session, 1, settled_id)
	if not lane_id then
		return nil
	end
	local family_id = lane.tail.family

	local element = quiet('LPOP', ready_key(family_id, band))
	if type(element) ~= 'string' then
		return nil
	end
	entry_delete(id)
	if lane ~= settled then
		lanes_move(lane_id, lane, settled_id, settled, 1)
	end
	call('HSET', name, slot, q .. '|' .. family_id .. '|' .. lane_id .. '|' .. element ..
		lane.role .. ends_text(session) .. '|1|' .. LETTER[band])
	if not reply_one(reply, argv[9], argv[10]) then
		count('delivery_errors')
		result_keep(id, argv[9], argv[10])
		announce()
	end
	local run = lane.run -- made once: Redis has read it before the next call
	run[1], run[10] = lane_id, element
	ANSWER[2], ANSWER[6] = now, run
	return ANSWER
end

-- ---- a batch -----------------------------------------------------------------------

-- The jobs of n leases, if they are plain first deliveries of the lane of the first one;
-- and its id.
local function leases_take(n, got)
	local id, from, to = lease_take(got[2], argv[6])
	if not id then
		return nil
	end
	local first, ids, seen = got[2], { id }, { [id] = true }
	local home = sub(first, #argv[6] + 2, to + 1) -- "family|lane|"
	local size = #home
	for i = 2, n do
		local q, lease = argv[6 * i], got[i + 1]
		local skip = #q + 1
		if not lease or sub(lease, 1, skip) ~= q .. '|' or
			sub(lease, skip + 1, skip + size) ~= home or sub(lease, -4, -2) ~= '|1|' then
			return nil
		end
		id = match(lease, '^([%d-]+)|p|', skip + size + 1)
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
	return values
end

-- As settle_single, for n jobs.
function settle_batch(session, name, n, q, got)
	local values = results_take(n)
	local ids, settled_id
	if values then
		ids, settled_id = leases_take(n, got)
	end
	if not ids or call('EXISTS', key.look) == 1 then
		return nil
	end
	local lane_id, lane, settled, band = source_of(session, n, settled_id)
	if not lane_id then
		return nil
	end
	local family_id = lane.tail.family
	local list = ready_key(family_id, band)
	local items = call('LRANGE', list, '0', number_text(n))
	if #items <= n then
		return nil -- the list would run empty: that is news
	end
	local run = { lane_id, family_id, 'p', lane.g, lane.tail.px, 0, 0, 0, lane.p }
	local args, head = {}, '|' .. family_id .. '|' .. lane_id .. '|'
	local tail = lane.role .. ends_text(session) .. '|1|' .. LETTER[band]
	for i = 1, n do
		run[9 + i] = items[i]
		args[2 * i - 1] = argv[6 * i - 1]
		args[2 * i] = number_text(q + i - 1) .. head .. items[i] .. tail
	end

	call('XDEL', key.jobs, unpack(ids))
	if lane ~= settled then
		lanes_move(lane_id, lane, settled_id, settled, n)
	end
	call('HSET', name, unpack(args))
	call('LTRIM', list, number_text(n), '-1')
	reply_push(argv[8], argv[9], values, ids, n)
	announce()
	return { 'OK', now, 0, NOTHING_TO_SAY, NOTHING_TO_SAY, run }
end

end
