-- swift.lua - the usual settle: plain jobs end, as many start in their slots.
--
--   what ends    what the slots hold is remembered (recall.lua): nothing is read back
--   what starts  the best open lane is remembered, too (the verdict): its list is popped
--
-- What is in flight, the bits and the memberships stay as they are, so nothing has to be
-- counted down and up again; only where jobs of one lane end and jobs of another one
-- start, what is in use moves from record to record.  Every condition is looked at first;
-- where one does not hold nothing has been written, and settle.lua goes the long way.  But
-- for a list that is found empty: that is put right by itself, and the next one tried.  Both
-- ways give the same answer and leave the same keys: a test plays one against the other.
--
-- The jobs that end: plain first deliveries.  What their usage does (`until` moves, the
-- scheduler hears of it) is done here, too, but for families with gated ancestors.
--
-- The lane the next ones come from is the best open one, and simple: only fresh jobs of one
-- band wait, nothing above it gates, nothing is marked (its score is a whole number then,
-- see lane_score).  Its gate is open (and not only because holding is off), and no credit,
-- ticket or first event is wanted.  `look` is absent: nobody has ended from outside, no
-- budget is parked, over its pace, limited or asks for a first event.
--
-- All that stays true until something else is written: every other call that writes moves
-- the stamp (base.lua).  So verdicts and lane records are remembered under the stamp with
-- which they were found, and while that stands nothing is read but the clock.  This file
-- itself moves what is in use from lane to lane under the same stamp, here and in Redis.

local settle_swift
do

local LANES_MAX = 2000 -- records remembered before all is forgotten

local stamp -- under which all this was found
local lanes_known, lanes_n -- by id
local verdicts -- by session, what stands for all that are alike: { best, lanes }
local dry -- the verdict whose list has turned out to be empty

local function all_forget()
	stamp, lanes_known, lanes_n, verdicts = recall.stamp, {}, 0, {}
end

-- ---- lanes -------------------------------------------------------------------------

local FIVE = {} -- five digits
for n = 0, 999 do
	FIVE[n] = format('%05d', n)
end

-- A lane record in pieces, what is in use being the one that moves; false if there is none.
local function lane_seen(id, rec)
	local lane = lanes_known[id]
	if lane == nil then
		rec = rec or call('HGET', key.lanes, id)
		lane = rec and byte(rec, 1) == 49 and byte(rec, 97) == 124 and {
			id = id, head = sub(rec, 1, 17), use = sub(rec, 18, 22) + 0, rest = sub(rec, 23),
			window = sub(rec, 23, 27) + 0, budget = lane_tail(rec).budget,
			g = sub(rec, 4, 13) + 0, till = sub(rec, 36, 49) + 0, life = sub(rec, 58, 67) + 0,
		}
		lanes_known[id] = lane
		lanes_n = lanes_n + 1
	end
	return lane
end

-- ---- the verdict: where the next job of a session comes from -----------------------

local verdict_of
do

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
local function verdict_new(session, id, score, rec)
	local band = floor(score / 1000000000)
	rec = rec or call('HGET', key.lanes, id)
	if band < 1 or score % 1 ~= 0 or not is_calm(rec, session) then
		return false
	end
	local tail, g, lane = lane_tail(rec), format('%d', sub(rec, 4, 13)), lane_seen(id, rec)
	local home = start.home_of(id, tail.family, g, true)
	return { id = id, lane = lane, home = home, band = band, family = tail.family,
		till = min(lane.till, lane.life > 0 and sub(rec, 83, 96) + 0 or NEVER),
		head = home.text, role = '|p|' .. g .. '|0,0|', behind = '|1|' .. LETTER[band],
		list = key.ns .. READY[band][1] .. tail.family,
		run = ' 0\n\n\n' .. id .. ' ' .. tail.family .. ' p ' .. g .. ' ' ..
			(tail.px == '' and '-' or tail.px) .. ' 0 0 0 ' ..
			format('%d', sub(rec, 50, 57)) .. ' ' }
end

local function verdict_best(session)
	local id, score = best_open(session)
	return call('EXISTS', key.look) == 0 and id and verdict_new(session, id, score)
end

-- The lane that a job ended on goes on if it is not worse in class than the best one.
local function verdict_here(session, id, best)
	local rec = call('HGET', key.lanes, id)
	if not rec or #rec < 97 or byte(rec, 97) ~= 124 then
		return false
	end
	local score = call('ZSCORE', lane_tail(rec).open, id)
	if not score or floor(score / 1000000000) > best.band then
		return best
	end
	return verdict_new(session, id, score + 0, rec)
end

-- What does not change within a millisecond.
local function verdict_time(verdict, session)
	verdict.at = now
	verdict.tail = verdict.role .. ends_text(session) .. verdict.behind
	verdict.answer = 'OK ' .. now_text() .. verdict.run
end

-- The verdict that stands for who has settled jobs of this lane, or a new one; nil if
-- something is unusual.
function verdict_of(session, id)
	if session.shunned ~= '' then
		return nil -- the lane of a job that ends may be one it is not to go on with
	end
	local own = verdicts[session]
	if not own then
		own = { best = verdict_best(session), lanes = {} }
		verdicts[session] = own
	end
	local best = own.best
	local verdict = own.lanes[id]
	if best and verdict == nil then
		verdict = best.id == id and best or verdict_here(session, id, best)
		own.lanes[id] = verdict
	end
	if not best or not verdict or now >= verdict.till or now >= best.till then
		return nil
	end
	if verdict.at ~= now then
		verdict_time(verdict, session)
	end
	return verdict
end

end

-- The last job of a list is taken like any other, and leaves its bit set.  Who finds
-- nothing there puts it right, as a claim would: the next family has its turn.
local function list_end()
	book_open()
	queue_ready(queue_of(family_of(dry.family), READY[dry.band], false), 1)
	dry = nil
	book_check()

	book_store()
	announce()
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

local function ends_add(id)
	local at = places[id]
	if at then
		counts[at] = counts[at] + 1
	else
		at = ends_n + 1
		ends_n = at
		ends[at], counts[at], sents[at], places[id] = id, 1, false, at
	end
end

-- When the request was sent, if it read or wrote an entry (usage.touch).
local function sent_of(words)
	local sent, read, written = match(words, '^(%d+) %S+ (%d+) (%d+) ')
	if sent and #sent <= 14 and #read <= 14 and #written <= 14 then -- the usual one
		return (read + 0 > 0 or written + 0 > 0) and sent + 0 or nil
	end
	sent, read, written = match(words, '^(%d+) %S+ (%S+) (%S+)')
	if sent and #sent <= 14 and
		((usage.amount(read) or 0) > 0 or (usage.amount(written) or 0) > 0) then
		return sent + 0
	end
end

-- What one of them used; false if more than its own lane is concerned.
local function ends_use(verdict, home, words)
	local sent = (home.lane ~= verdict.id or verdict.lane.life > 0) and sent_of(words)
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

-- ---- what is in use moves ----------------------------------------------------------

local moves, moves_n = {}, 0 -- lane, in use, `until` from now on
local args = {}

-- `until` of the lane behind the jobs that end there.
local function till_of(lane, at)
	local life = sents[at] and lane.g == gs[at] and lane.life or 0
	return max(lane.till, life > 0 and min(min(sents[at], now) + life, NEVER) or 0)
end

local function move(lane, use, till)
	if use ~= lane.use or till ~= lane.till then
		moves[moves_n + 1], moves[moves_n + 2], moves[moves_n + 3] = lane, use, till
		moves_n = moves_n + 3
	end
end

-- Plans it; false if a window may decide where a lane belongs, before or after.
local function moves_plan(verdict, n)
	local to, at = verdict.lane, places[verdict.id]
	local use = to.use + n - (at and counts[at] or 0)
	moves_n = 0
	if use ~= to.use and use >= to.window then
		return false
	end
	move(to, use, at and till_of(to, at) or to.till)
	for i = 1, ends_n do
		local lane = i ~= at and lane_seen(ends[i])
		if lane then
			if lane.use < counts[i] or lane.use >= lane.window or lane.budget ~= to.budget then
				return false
			end
			move(lane, lane.use - counts[i], till_of(lane, i))
		elseif i ~= at then
			return false
		end
	end
	return true
end

-- Writes it, and remembers it.
local function moves_store()
	local n = 0
	for i = 1, moves_n, 3 do
		local lane, use, till = moves[i], moves[i + 1], moves[i + 2]
		if till ~= lane.till then
			lane.till, lane.rest = till, put(lane.rest, 14, 27, till)
		end
		lane.use = use
		args[n + 1], args[n + 2] = lane.id, lane.head .. (FIVE[use] or format('%05d', use)) ..
			lane.rest
		n = n + 2
	end
	call('HSET', key.lanes, unpack(args, 1, n))
end

-- ---- one job -----------------------------------------------------------------------

-- Payloads of jobs that have ended.  Most are entries; if one is none, or the inbox itself
-- of a wrong type, each is looked at: nothing else may fail for that.
local function payloads_look(ids)
	for _, element in ipairs(ids) do
		local id = element_id(element)
		if not element_is_slim(element) then
			if type(quiet('XDEL', key.jobs, id)) == 'table' then
				count('function_errors')
			end
		elseif call('DEL', key.ns .. 'slim:' .. id) == 1 then
			count('slims', -1)
		end
	end
	announce()
end

-- Where results go: "ttl reply"; false if the long way has something to say about that.
local function goal_of(ttl, reply)
	local by_reply = memo.ttl[ttl]
	if not by_reply then
		by_reply = {}
		memo_grow()
		memo.ttl[ttl] = by_reply
	end
	local goal = by_reply[reply]
	if goal == nil then
		local name = reply ~= '' and replies.key_of(reply)
		goal = #ttl <= 14 and find(ttl, '^%d+$') and (name or reply == '') and
			{ name = name, ttl = ttl, fresh_ms = ttl / 16 } or false
		memo_grow()
		by_reply[reply] = goal
	end
	return goal
end

-- Hands the result of one job over.
local function result_give(goal, element, result)
	local name = goal.name
	local size = name and quiet('RPUSH', name, result)
	if type(size) == 'number' then
		local given = memo.given[name]
		if size == 1 or size > replies.MAX or not given or now < given or
			now > given + goal.fresh_ms then
			replies.bound(name, goal.ttl, size, 1)
		end
		return
	end
	if name then
		count('delivery_errors')
	end
	replies.keep(element_id(element), goal.ttl, result)
	announce()
end

-- The usual way for one: nothing was told of a cache.  False if a window may decide where
-- a lane belongs, before or after.
local function can_hand_over(from, to)
	return from and from.use >= 1 and from.use < from.window and from.budget == to.budget and
		to.use + 1 < to.window
end

-- One slot in use goes from lane to lane.
local function hand_over(from, to)
	local more, less = to.use + 1, from.use - 1
	to.use, from.use = more, less
	call('HSET', key.lanes, to.id, to.head .. (FIVE[more] or format('%05d', more)) .. to.rest,
		from.id, from.head .. (FIVE[less] or format('%05d', less)) .. from.rest)
end

-- What a job with usage changes in lane records; false if that is unusual.
local function single_plan(verdict, home, words)
	ends_open()
	ends_add(home.lane)
	return ends_use(verdict, home, words) and moves_plan(verdict, 1)
end

-- argv: 1 nonce c =1 slot q usage reply ttl result q
-- The first write takes the next job, by pcall: where there is none, or no list, nothing
-- has happened.
local function settle_single(name, own)
	local slot, words, q = argv[5], argv[7], argv[11]
	local home, goal = own.home[slot], goal_of(argv[9], argv[8])
	if own.q[slot] ~= argv[6] or not goal or #q > 14 or q == '' or find(q, '%D') then
		return nil
	end
	local verdict = verdict_of(own.session, home.lane)
	if not verdict then
		return nil
	end
	local from -- the lane that hands its slot over
	if words ~= '' then
		if not single_plan(verdict, home, words) then
			return nil
		end
	elseif home.lane ~= verdict.id then
		from = lane_seen(home.lane)
		if not can_hand_over(from, verdict.lane) then
			return nil
		end
	end
	local element = quiet('LPOP', verdict.list)
	if not element or element.err then
		dry = not element and verdict
		return nil
	end
	local kept = quiet('HSET', name, slot, q .. verdict.head .. element .. verdict.tail)
	if kept ~= 0 and type(kept) == 'table' then -- no table any more: the long way will say so
		quiet('LPUSH', verdict.list, element)
		recall.forget(name)
		return nil
	end
	local ended = own.id[slot]
	own.q[slot], own.id[slot], own.home[slot] = q, element, verdict.home
	if from then
		hand_over(from, verdict.lane)
	elseif words ~= '' and moves_n > 0 then
		moves_store()
	end
	local gone = quiet('XDEL', key.jobs, ended)
	if gone ~= 1 and type(gone) == 'table' then
		payloads_look({ ended })
	end
	result_give(goal, ended, argv[10])
	if words ~= '' then
		say(home.done .. usage.words(words))
		announce()
	end
	return verdict.answer .. element
end

-- ---- a batch -----------------------------------------------------------------------

local taken, serial = {}, 0 -- slots of this call
local held, values, puts = {}, {}, {} -- what ends, its results; what is written

-- What the n slots hold, if it is what the call names and all goes to one list; counted by
-- lane.
local function batch_take(own, n)
	local words, qs, ids, homes = argv, own.q, own.id, own.home
	local reply, ttl, last = words[8], words[9], nil
	serial = serial + 1
	ends_open()
	for i = 1, n do
		local at = 6 * i
		local slot = words[at - 1]
		if qs[slot] ~= words[at] or words[at + 2] ~= reply or words[at + 3] ~= ttl or
			taken[slot] == serial then
			return false
		end
		taken[slot] = serial
		held[i], values[i] = ids[slot], words[at + 4]
		local lane = homes[slot].lane
		if lane == last then
			counts[places[lane]] = counts[places[lane]] + 1
		else
			ends_add(lane)
			last = lane
		end
	end
	return true
end

-- The verdict for who has settled them; nil if something is unusual.
local function batch_verdict(own, n)
	local verdict
	for i = 1, ends_n do
		verdict = verdict_of(own.session, ends[i])
		if not verdict then
			return nil
		elseif verdict.id == ends[i] then
			break -- the first of them that goes on
		end
	end
	for i = 1, n do
		local words = argv[6 * i + 1]
		if words ~= '' and not ends_use(verdict, own.home[argv[6 * i - 1]], words) then
			return nil
		end
	end
	return moves_plan(verdict, n) and verdict
end

-- Puts items into the slots; false if the table is none.
local function batch_start(name, own, n, q, verdict, items)
	local words, qs, ids, homes = argv, own.q, own.id, own.home
	local head, tail, home = verdict.head, verdict.tail, verdict.home
	for i = 1, n do
		local slot, used, token, item = words[6 * i - 1], words[6 * i + 1],
			number_text(q + i - 1), items[i]
		puts[2 * i - 1], puts[2 * i] = slot, token .. head .. item .. tail
		if used ~= '' then
			say(homes[slot].done .. usage.words(used))
		end
		qs[slot], ids[slot], homes[slot] = token, item, home
	end
	return type(quiet('HSET', name, unpack(puts, 1, 2 * n))) ~= 'table'
end

-- As settle_single, for n jobs.
local function settle_batch(name, own, n)
	local goal, q = goal_of(argv[9], argv[8]), argv[6 * n + 5]
	if not goal or #q > 14 or not find(q, '^%d+$') then
		return nil
	end
	local verdict = batch_take(own, n) and batch_verdict(own, n)
	local items = verdict and call('LRANGE', verdict.list, '0', number_text(n - 1))
	if not items or #items < n then
		dry = items and #items == 0 and verdict
		return nil
	end
	if not batch_start(name, own, n, q + 0, verdict, items) then
		recall.forget(name)
		hush()
		return nil
	end
	if moves_n > 0 then
		moves_store()
	end
	call('LTRIM', verdict.list, number_text(n), '-1')
	if type(quiet('XDEL', key.jobs, unpack(held, 1, n))) == 'table' then
		payloads_look({ unpack(held, 1, n) })
	end
	replies.push(argv[8], argv[9], values, held, n)
	for i = 1, n do
		values[i] = false -- it can be large
	end
	announce()
	return verdict.answer .. concat(items, ' ', 1, n)
end

-- ---- both --------------------------------------------------------------------------

-- Answers nil if something is not as usual, as where slots are named to claim into;
-- nothing has changed then.
function settle_swift()
	local name = memo.lease[argv[2]]
	local own = name and recall.tables[name]
	if not own or own.session.c ~= argv[3] or not argv[9] then
		return nil
	end
	local is_single = argc == 11 and argv[4] == '=1'
	local n = is_single and 1 or (match(argv[4], '^=(%d+)$') or 0) + 0
	if not is_single and (n < 2 or n > 1000 or argc ~= 6 * n + 5) then
		return nil
	end
	for _ = 1, 2 do
		if stamp ~= recall.stamp or lanes_n > LANES_MAX then
			all_forget()
		end
		local answer
		if is_single then
			answer = settle_single(name, own)
		else
			answer = settle_batch(name, own, n)
		end
		if answer or not dry then
			return answer
		end
		list_end()
	end
end

end
