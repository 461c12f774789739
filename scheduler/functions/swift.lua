-- swift.lua - the usual settle: plain jobs end, as many start in their slots.
--
--   what ends    what the slots hold is remembered (recall.lua): nothing is read back
--   what starts  the best open lane is remembered, too (the verdict): its list is popped
--
-- What is in flight, the bits and the memberships stay as they are, so nothing has to be
-- counted down and up again; only where jobs of one lane end and jobs of another one
-- start, what is in use moves from record to record.  Every condition is looked at first;
-- where one does not hold nothing has been written, and settle.lua goes the long way.  Both
-- ways give the same answer and leave the same keys: a test plays one against the other.
--
-- The jobs that end: plain first deliveries.  What their usage does (`until` moves, the
-- scheduler hears of it) is done here, too, but for families with gated ancestors.
--
-- The lane the next ones come from is the best open one, and simple: only fresh jobs of one
-- band wait, nothing above it gates, nothing is marked (its score is a whole number then,
-- see lane_score).  Its gate is open (and
-- not only because holding is off), and no credit, ticket or first event is wanted.  `look`
-- is absent: nobody has ended from outside, no budget is parked, over its pace, limited or
-- asks for a first event.
--
-- All that stays true until something else is written: every other call that writes moves
-- the stamp (store.lua).  So the verdict is remembered with the stamp it was found under,
-- and while that stands one GET is all there is to look at.  The stamp moves by uneven
-- steps, so that two histories (a failover, and back) do not meet at the same number.

local settle_swift
do

-- ---- the verdict: where the next job of a session comes from -----------------------

-- The best member over all budgets of the session: id, score.
local function best_open(session)
	local names = plan.budgets(session)
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

-- True if the lane may start plain jobs until something is written or a time comes.
local function is_calm(rec, session)
	return rec and byte(rec, 1) == 49 and byte(rec, 97) == 124 and byte(rec, 2) >= 51 and
		byte(rec, 3) ~= 55 and sub(rec, 14, 16) == '000' and byte(rec, 68) ~= 49 and
		lane_tail(rec).pool == session.pool
end

-- For starts from this lane, which stands in its open set with this score; false if it is
-- not simple.
local function verdict_new(session, lane, score, rec)
	local band = floor(score / 1000000000)
	rec = rec or call('HGET', key.lanes, lane)
	if band < 1 or score % 1 ~= 0 or not is_calm(rec, session) then
		return false
	end
	local tail, g = lane_tail(rec), format('%d', sub(rec, 4, 13))
	local life = sub(rec, 58, 67) + 0
	local home = start.home_of(lane, tail.family, g, true)
	return { lane = lane, home = home, life = life, band = band,
		till = min(sub(rec, 36, 49) + 0, life > 0 and sub(rec, 83, 96) + 0 or NEVER),
		budget = tail.budget, lease = home.text, behind = '|1|' .. LETTER[band],
		role = '|p|' .. g .. '|0,0|', list = key.ns .. READY[band][1] .. tail.family,
		run = ' 0\n\n\n' .. lane .. ' ' .. tail.family .. ' p ' .. g .. ' ' ..
			(tail.px == '' and '-' or tail.px) .. ' 0 0 0 ' ..
			format('%d', sub(rec, 50, 57)) .. ' ' }
end

local function verdict_best(session)
	local lane, score = best_open(session)
	return lane and verdict_new(session, lane, score)
end

-- The lane that a job ended on goes on if it is not worse in class than the best one.
local function verdict_here(session, lane, best)
	local rec = call('HGET', key.lanes, lane)
	if not rec or #rec < 97 or byte(rec, 97) ~= 124 then
		return false
	end
	local score = call('ZSCORE', lane_tail(rec).open, lane)
	if not score or floor(score / 1000000000) > best.band then
		return best
	end
	return verdict_new(session, lane, score + 0, rec)
end

-- The verdict that stands for who has settled jobs of this lane, or a new one; false if
-- something is unusual.
local function verdict_of(own, lane)
	if own.stamp ~= recall.stamp then
		own.stamp, own.best, own.verdicts = recall.stamp, nil, {}
	end
	if own.best == nil then
		own.best = call('EXISTS', key.look) == 0 and verdict_best(own.session) or false
	end
	local best = own.best
	local verdict = best and best.lane == lane and best or own.verdicts[lane]
	if best and verdict == nil then
		verdict = verdict_here(own.session, lane, best)
		own.verdicts[lane] = verdict
	end
	return best and verdict and now < verdict.till and now < best.till and verdict
end

-- ---- what ends: counted by lane ----------------------------------------------------

local ends_n = 0
local ends, counts = {}, {} -- lanes, and how many of their jobs end
local sents, gs = {}, {} -- when the latest that met a cache was sent, and under which g
local places = {} -- lane -> its place among them

local function ends_open()
	for i = 1, ends_n do
		places[ends[i]] = nil
	end
	ends_n = 0
end

local function ends_add(lane)
	local at = places[lane]
	if at then
		counts[at] = counts[at] + 1
	else
		at = ends_n + 1
		ends_n = at
		ends[at], counts[at], sents[at], places[lane] = lane, 1, false, at
	end
end

-- When the request was sent, if it read or wrote an entry (usage.touch).
local function sent_of(words)
	local sent, read, written = match(words, '^(%d+) %S+ (%S+) (%S+)')
	if sent and #sent <= 14 and
		((usage.amount(read) or 0) > 0 or (usage.amount(written) or 0) > 0) then
		return sent + 0
	end
end

-- What one of them used; false if more than its own lane is concerned.
local function ends_use(verdict, home, words)
	local sent = words ~= '' and (home.lane ~= verdict.lane or verdict.life > 0) and
		sent_of(words)
	if not sent then
		return true
	end
	local at = places[home.lane]
	if sents[at] and gs[at] ~= home.g then
		return false
	end
	sents[at], gs[at] = max(sent, sents[at] or 0), home.g
	return home.is_alone
end

-- ---- records -----------------------------------------------------------------------

local function column(rec, at)
	local a, b, c, d, e = byte(rec, at, at + 4)
	return (a - 48) * 10000 + (b - 48) * 1000 + (c - 48) * 100 + (d - 48) * 10 + e - 48
end

local function till_raised(rec, at)
	local life = sents[at] and sub(rec, 4, 13) + 0 == gs[at] and sub(rec, 58, 67) + 0 or 0
	local till = life > 0 and min(min(sents[at], now) + life, NEVER) or 0
	return till > sub(rec, 36, 49) + 0 and put(rec, 36, 49, till) or rec
end

-- The arguments of the HSET that moves what is in use and raises `until`; {} if there is
-- none; nil if a window may decide where a lane belongs, before or after.
local function lanes_change(verdict, n)
	local home_at = places[verdict.lane]
	local moved = n - (home_at and counts[home_at] or 0)
	if moved == 0 and not sents[home_at] then
		return {}
	end
	local recs = call('HMGET', key.lanes, verdict.lane, unpack(ends, 1, ends_n))
	local args, rec = {}, recs[1]
	local use = rec and column(rec, 18)
	if not rec or (moved > 0 and use + moved >= column(rec, 23)) then
		return nil
	end
	if moved > 0 then
		rec = put(rec, 18, 22, use + moved)
	end
	args[1], args[2] = verdict.lane, home_at and till_raised(rec, home_at) or rec
	for i = 1, ends_n do
		rec = recs[i + 1]
		if i ~= home_at then
			use = rec and #rec >= 97 and byte(rec, 1) == 49 and column(rec, 18)
			if not use or use < counts[i] or use >= column(rec, 23) or
				lane_tail(rec).budget ~= verdict.budget then
				return nil
			end
			args[#args + 1] = ends[i]
			args[#args + 1] = till_raised(put(rec, 18, 22, use - counts[i]), i)
		end
	end
	return args
end

-- Payloads of jobs that have ended.  If the inbox itself is of a wrong type there is
-- nothing to delete, and nothing else may fail for that.
local function entries_delete(...)
	local gone = quiet('XDEL', key.jobs, ...)
	if type(gone) == 'table' then
		count('function_errors')
	end
end

-- What the slot holds from now on.  An element that says more than an id is read again.
local function hold(name, own, slot, q, element, home)
	if find(element, '[~/]') then
		recall.drop(name, slot)
	else
		own.q[slot], own.id[slot], own.home[slot] = q, element, home
	end
end

-- ---- one job -----------------------------------------------------------------------

local function is_ttl(text)
	local is = memo.ttl[text]
	if is == nil then
		is = #text <= 14 and find(text, '^%d+$') ~= nil
		memo_grow()
		memo.ttl[text] = is
	end
	return is
end

-- Hands the result of one job over.
local function result_give(reply, id, ttl, result)
	if reply and replies.push_one(reply, ttl, result) then
		return
	end
	if reply then
		count('delivery_errors')
	end
	replies.keep(id, ttl, result)
end

-- argv: 1 nonce c 1 slot q usage reply result_ttl result q slot, the two slots the same.
-- The first write takes the next job, by pcall: where there is none, or no list, nothing
-- has happened.  If it was the last one, its bit stays set until somebody looks.
local function settle_single(name, own)
	local slot, words = argv[5], argv[7]
	local reply = argv[8] ~= '' and replies.key_of(argv[8])
	if own.q[slot] ~= argv[6] or find(argv[11], '%D') or argv[11] == '' or #argv[11] > 14 or
		(argv[8] ~= '' and not reply) then
		return nil
	end
	local id, home = own.id[slot], own.home[slot]
	local verdict = verdict_of(own, home.lane)
	local args
	if verdict and (home.lane ~= verdict.lane or words ~= '') then
		ends_open()
		ends_add(home.lane)
		args = ends_use(verdict, home, words) and lanes_change(verdict, 1)
		if not args then
			return nil
		end
	end
	local element = verdict and quiet('LPOP', verdict.list)
	if type(element) ~= 'string' then
		return nil
	end
	local got = quiet('HSET', name, slot, argv[11] .. verdict.lease .. element .. verdict.role ..
		ends_text(own.session) .. verdict.behind)
	if type(got) == 'table' then -- no table any more: the long way will say so
		quiet('LPUSH', verdict.list, element)
		recall.forget(name)
		return nil
	end
	hold(name, own, slot, argv[11], element, verdict.home)
	if args and args[1] then
		call('HSET', key.lanes, unpack(args))
	end
	entries_delete(id)
	result_give(reply, id, argv[9], argv[10])
	if words ~= '' then
		say(home.done .. usage.words(words))
	end
	announce()
	return 'OK ' .. now_text() .. verdict.run .. element
end

-- ---- a batch -----------------------------------------------------------------------

local taken, serial = {}, 0 -- slots of this call

-- What the n slots hold, if it is what the call names and all goes to one list.
local function batch_take(own, n)
	local qs, held, reply, ttl = own.q, own.id, argv[8], argv[9]
	local ids, values, behind = {}, {}, 6 * n + 5
	serial = serial + 1
	for i = 1, n do
		local at = 6 * i
		local slot = argv[at - 1]
		if qs[slot] ~= argv[at] or argv[behind + i] ~= slot or argv[at + 2] ~= reply or
			argv[at + 3] ~= ttl or taken[slot] == serial then
			return nil
		end
		taken[slot] = serial
		ids[i], values[i] = held[slot], argv[at + 4]
	end
	return ids, values
end

-- Counts them by lane.  Answers the verdict and what changes in lane records.
local function batch_ends(own, n)
	local homes, verdict = own.home, nil
	ends_open()
	for i = 1, n do
		ends_add(homes[argv[6 * i - 1]].lane)
	end
	for i = 1, ends_n do
		verdict = verdict_of(own, ends[i])
		if not verdict then
			return nil
		elseif verdict.lane == ends[i] then
			break -- the first of them that goes on
		end
	end
	for i = 1, n do
		if not ends_use(verdict, homes[argv[6 * i - 1]], argv[6 * i + 1]) then
			return nil
		end
	end
	return verdict, lanes_change(verdict, n)
end

-- Puts items into the slots; false if the table is none.  is_bare: they are ids, no more.
local function batch_start(name, own, n, q, verdict, items, is_bare)
	local args, qs, held, homes = {}, own.q, own.id, own.home
	local head, home = verdict.lease, verdict.home
	local tail = verdict.role .. ends_text(own.session) .. verdict.behind
	for i = 1, n do
		local slot, token, item = argv[6 * i - 1], number_text(q + i - 1), items[i]
		args[2 * i - 1], args[2 * i] = slot, token .. head .. item .. tail
		if argv[6 * i + 1] ~= '' then
			say(homes[slot].done .. usage.words(argv[6 * i + 1]))
		end
		if is_bare then
			qs[slot], held[slot], homes[slot] = token, item, home
		else
			hold(name, own, slot, token, item, home)
		end
	end
	return type(quiet('HSET', name, unpack(args))) ~= 'table'
end

-- As settle_single, for n jobs.
local function settle_batch(name, own, n)
	local ids, values = batch_take(own, n)
	local verdict, changes = nil, nil
	if ids then
		verdict, changes = batch_ends(own, n)
	end
	local items = changes and call('LRANGE', verdict.list, '0', number_text(n))
	if not items or #items <= n then
		return nil -- the list would run empty: that is news
	end
	local text = concat(items, ' ', 1, n)
	local is_bare = not find(text, '~', 1, true) and not find(text, '/', 1, true)
	if not batch_start(name, own, n, argv[6 * n + 5] + 0, verdict, items, is_bare) then
		recall.forget(name)
		hush()
		return nil
	end
	if changes[1] then
		call('HSET', key.lanes, unpack(changes))
	end
	call('LTRIM', verdict.list, number_text(n), '-1')
	entries_delete(unpack(ids))
	replies.push(argv[8], argv[9], values, ids, n)
	announce()
	return 'OK ' .. now_text() .. verdict.run .. text
end

-- ---- both --------------------------------------------------------------------------

-- Answers nil if something is not as usual; nothing has changed then.
function settle_swift()
	local name = memo.lease[argv[2]]
	local own = name and recall.tables[name]
	if not own or own.session.c ~= argv[3] or not argv[9] or not is_ttl(argv[9]) or
		not recall.stands() then
		return nil
	end
	if argc == 12 and argv[4] == '1' and argv[5] == argv[12] then
		return settle_single(name, own)
	end
	local n = tonumber(argv[4]) or 0
	local q = argv[6 * n + 5]
	if n < 2 or n > 1000 or argc ~= 7 * n + 5 or #q > 14 or not find(q, '^%d+$') then
		return nil
	end
	return settle_batch(name, own, n)
end

end
