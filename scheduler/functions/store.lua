-- store.lua - the one place that writes what the book holds.
--
--   book_open    an empty book, at the start of every call
--   book_check   last reads: lanes whose family changed, memberships, types of lists and
--                sets that will be written.  Behind it nothing may fail.
--   book_store   the writes
--
-- Non-empty families have all their lanes in the open set; the edge from empty writes all
-- of them, the edge to empty is found by whoever takes the last element.

local book_open, book_check, book_store, lane_move
do

function book_open()
	lanes, families, budgets = {}, {}, {}
	lane_list, family_list, budget_list = {}, {}, {}
	lane_n, family_n, budget_n = 0, 0, 0
	book, entries_n, results_n = {}, 0, 0
	level, admitting = false, false
	lists.open()
	sets.open()
	pasts_open()
end

-- ---- check -------------------------------------------------------------------------

-- A lane follows its family to another pool or budget, with what it has in flight.
function lane_move(lane, pool, budget)
	local tail = lane.tail
	if tail.pool == pool and tail.budget == budget then
		return
	end
	set_del(tail.open, lane.id)
	set_del(tail.held, lane.id)
	if tail.budget ~= budget and lane.use > 0 then
		local from, to = budget_of(tail.budget), budget_of(budget)
		from.flight, to.flight = from.flight - lane.use, to.flight + lane.use
	end
	lane.rec = lane_print(sub(lane.rec, 1, 96), pool, budget, tail.family, tail.px, tail.ticket)
	lane.tail = lane_tail(lane.rec)
	lane.was = nil -- it stands in no set of its new home
end

-- A node that was only above others gets jobs of its own: so does its lane.
local function lane_adopt(lane, family)
	local tail = lane.tail
	if tail.family == '' then
		lane.rec = lane_print(sub(lane.rec, 1, 96), tail.pool, tail.budget, family.id, tail.px,
			tail.ticket)
		lane.tail = lane_tail(lane.rec)
	end
end

-- A family went from empty to work or back, or got work: its lanes have to follow.
local function family_check(family)
	local ids = family.tail.lanes
	records_load(ids, lanes, key.lanes, lane_take)
	for i = 1, #ids do
		local lane = lanes[ids[i]]
		lane.family = family
		if not lane.missing then
			lane_adopt(lane, family)
			lane_move(lane, family.tail.pool, family.tail.budget)
		else -- lost: without it the family would wait for ever
			lane.missing = nil
			lane.rec = lane_print(LANE_BLANK, family.tail.pool, family.tail.budget, family.id,
				family.tail.px, '')
			lane.tail = lane_tail(lane.rec)
			if not family.fresh then
				say('drift ' .. lane.id)
				count('lane_drift')
			end
		end
	end
	if family.bits == 0 and family.bits_was > 0 then
		say('empty ' .. family.id)
	elseif family.bits > 0 and family.bits_was == 0 and not admitting then
		say('work ' .. family.id)
	end
end

-- True if what waits changed in a way that moves lanes in or out of a set, or to another
-- score: all of them, not only those this call is about.
local function work_changed(family)
	local is, was = VIEW[family.bits], VIEW[family.bits_was]
	return is.class ~= was.class or is.now ~= was.now or is.held ~= was.held or
		is.simple ~= was.simple
end

local function lane_check(lane)
	if lane.use ~= lane.use_was then
		drifted = false
		lane.rec = put(lane.rec, 18, 22, lane.use)
		if drifted then
			lane.use = sub(lane.rec, 18, 22) + 0
			say('drift ' .. lane.id)
			count('lane_drift')
		end
	end
	local family = lane.family
	if level or lane.rec ~= lane.was or lane.score or lane.blocked or lane.unblocked or
		lane.due or
		(family and family.bits ~= family.bits_was) then
		place(lane, lane_join(lane)) -- who only looked at it has not joined it
	end
end

function book_check()
	for i = 1, family_n do
		local family = family_list[i]
		if not family.missing and
			(family.pushed or (family.bits ~= family.bits_was and work_changed(family))) then
			family_check(family)
		end
	end
	local i = 1
	while i <= lane_n do -- joining may load no further lane, but be safe
		local lane = lane_list[i]
		if not lane.missing then
			lane_check(lane)
		end
		i = i + 1
	end
	lists.check()
	sets.check()
	pacing.check()
	if book.graves then
		call('ZCARD', key.dead)
	end
	if book.laters then
		call('ZCARD', key.later)
	end
	if book.marks_new or book.marks_gone then
		call('HLEN', key.ended)
		call('HLEN', key.look)
	end
end

-- ---- store -------------------------------------------------------------------------

-- A variadic command over a list of any length; answers the sum of what it answers.
local function in_chunks(command, name, items, n)
	local sum = 0
	for from = 1, n, 1000 do
		sum = sum + call(command, name, unpack(items, from, min(n, from + 999)))
	end
	return sum
end

local function keys_delete(keys)
	local gone = 0
	for from = 1, keys and #keys or 0, 1000 do
		gone = gone + call('DEL', unpack(keys, from, min(#keys, from + 999)))
	end
	return gone
end

local function payloads_store()
	if entries_n == 1 then
		call('XDEL', key.jobs, entries_gone[1])
	elseif entries_n > 0 then
		in_chunks('XDEL', key.jobs, entries_gone, entries_n)
	end
	local gone, new = keys_delete(book.slims_gone), book.slims_new or {}
	for i = 1, #new, 2 do
		call('SET', key.ns .. 'slim:' .. new[i], new[i + 1])
	end
	if gone > 0 or #new > 0 then
		count('slims', #new / 2 - gone)
	end
end

local function families_store()
	local args, n = nil, 0
	for i = 1, family_n do
		local family = family_list[i]
		local rec = family.rec
		if family.bits ~= family.bits_was or family.live ~= 0 then
			rec = '1' .. VIEW[family.bits].digits .. sub(rec, 5, 6) ..
				format('%010d', max(0, sub(rec, 7, 16) + family.live)) .. sub(rec, 17)
		end
		if rec ~= family.was and not family.missing then
			args = args or {}
			args[n + 1], args[n + 2] = family.id, rec
			n = n + 2
		end
	end
	for from = 1, n, 1000 do
		call('HSET', key.families, unpack(args, from, min(n, from + 999)))
	end
end

local function lanes_store()
	local args, n = nil, 0
	for i = 1, lane_n do
		local lane = lane_list[i]
		if lane.rec ~= lane.was and not lane.missing then
			args = args or {}
			args[n + 1], args[n + 2] = lane.id, lane.rec
			n = n + 2
		end
	end
	for from = 1, n, 1000 do
		call('HSET', key.lanes, unpack(args, from, min(n, from + 999)))
	end
end

local function ends_store()
	keys_delete(book.pasts_gone)
	local pairs_of = { { 'HSET', key.ended, book.marks_new }, { 'HDEL', key.ended,
		book.marks_gone }, { 'ZADD', key.dead, book.graves }, { 'ZADD', key.later, book.laters } }
	for i = 1, 4 do
		local write = pairs_of[i]
		if write[3] then
			in_chunks(write[1], write[2], write[3], #write[3])
		end
	end
	if book.marks_new then
		call('HSET', key.look, 'ended', '1')
	elseif book.marks_gone and call('HLEN', key.ended) == 0 then
		call('HDEL', key.look, 'ended')
	end
	for i = 1, book.slots_gone and #book.slots_gone or 0 do
		call('HDEL', unpack(book.slots_gone[i]))
	end
end

function book_store()
	payloads_store()
	stamp_move()
	families_store()
	lanes_store()
	for i = 1, budget_n do
		pacing.store(budget_list[i])
	end
	lists.store()
	sets.store()
	pasts_store()
	if next(book) then
		ends_store()
	end
end

end
