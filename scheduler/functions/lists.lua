-- lists.lua - waiting jobs: into their lists, out of them, and the marks of ended ones.
--
--   push       the only way into a list of a family: sets the bit, opens all its lanes
--   queue      a cursor on one list: what is taken is read now and cut off by book_store
--
-- A bit may be set for an empty list, never the reverse; whoever finds the end of a list
-- clears it.  One element more than wanted is read, so that the end is seen at once and
-- not by the next claim.

local marked -- how many ended ids still stand in lists or leases
local push, push_slice, queue_of, queue_ready, queue_skip, queue_pull
local lists = {} -- open, check, store, are_cut_short
do

local pushes, push_list
local queues, queue_list, queue_n

function lists.open()
	pushes, push_list, queues, queue_list, queue_n = {}, {}, {}, {}, 0
	marked = 0
end

local function line_up(family, list, front)
	local name = key.ns .. list[1] .. family.id
	local line = pushes[name]
	if not line then
		local is_set = floor(family.bits / list[2]) % 2 == 1
		line = { name = name, family = family, front = front, n = 0, was_set = is_set }
		pushes[name] = line
		push_list[#push_list + 1] = line
		if not is_set then
			family.bits = family.bits + list[2]
		end
		family.pushed = true
	end
	return line
end

-- Returned jobs of the `now` list go to its front, all others to the end of theirs.
function push(family, list, element, front)
	local line = line_up(family, list, front)
	line.n = line.n + 1
	line[line.n] = element
end

-- As push, for argv[from] to argv[to] in their order.
function push_slice(family, list, from, to)
	local line = line_up(family, list)
	if not line.from and line.n == 0 then
		line.from, line.to = from, to
		return
	end
	for i = from, to do
		line.n = line.n + 1
		line[line.n] = argv[i]
	end
end

-- True if an open lane of this family is there for who sleeps.
local function has_open_lane(family)
	local ids = family.tail.lanes
	for i = 1, #ids do
		local lane = lanes[ids[i]]
		if lane and not lane.missing and lane_score(lane.rec, lane.use, family, family.bits,
			family_is_paused(family)) then
			return true
		end
	end
	return false
end

-- The bit of a list that has run empty may still be set; then only its length tells that
-- there is work again where there was none.
local function push_store(line)
	local size, n = 0, line.n
	if line.from then
		size = call('RPUSH', line.name, unpack(argv, line.from, line.to))
		n = n + line.to - line.from + 1
	end
	for from = 1, line.front and 0 or line.n, 1000 do
		size = call('RPUSH', line.name, unpack(line, from, min(line.n, from + 999)))
	end
	for i = line.front and line.n or 0, 1, -1 do
		size = call('LPUSH', line.name, line[i])
	end
	if size == n and line.was_set and has_open_lane(line.family) then
		wake(line.family.tail.pool)
	end
end

-- ---- out of a list -----------------------------------------------------------------

-- items[at + 1] to items[n] can be taken; `ends` says that nothing stands behind them.
-- A list that may hold returned jobs is `worn`: their history has to be looked at.
function queue_of(family, list, worn)
	local name = key.ns .. list[1] .. family.id
	local queue = queues[name]
	if not queue then
		queue = { name = name, family = family, bit = list[2], worn = worn, at = 0, n = 0 }
		queues[name] = queue
		queue_n = queue_n + 1
		queue_list[queue_n] = queue
	end
	return queue
end

local function queue_close(queue)
	local family = queue.family
	if floor(family.bits / queue.bit) % 2 == 1 then
		family.bits = family.bits - queue.bit
	end
end

-- Takes an element out of the middle; book_store will look for it by value.
function queue_pull(queue, i)
	local element = table.remove(queue.items, i)
	queue.n = queue.n - 1
	queue.pulled = queue.pulled or {}
	queue.pulled[#queue.pulled + 1] = element
	return element
end

-- Drops the ids that have ended meanwhile: their payload and result are long dealt with,
-- only the element and the mark were left.
local function queue_sweep(queue, from)
	local ids, items = {}, queue.items
	for i = from, queue.n do
		ids[i - from + 1] = element_id(items[i])
	end
	if #ids == 0 then
		return
	end
	local reasons = call('HMGET', key.ended, unpack(ids))
	for i = queue.n, from, -1 do
		if reasons[i - from + 1] then
			queue_pull(queue, i)
			note('marks_gone', ids[i - from + 1])
			note('pasts_gone', key.ns .. 'past:' .. ids[i - from + 1])
		end
	end
end

-- Sees to it that `want` elements and one more can be taken, if the list has them.
local function queue_fill(queue, want)
	while not queue.ends and queue.n - queue.at <= want do
		local from = queue.n + (queue.pulled and #queue.pulled or 0)
		local ask = max(want + 1 - (queue.n - queue.at), marked > 0 and 100 or 0)
		local items = call('LRANGE', queue.name, number_text(from), number_text(from + ask - 1))
		local got, n = #items, queue.n
		if n == 0 and not queue.pulled then
			queue.items = items
		else
			queue.items = queue.items or {}
			for i = 1, got do
				queue.items[n + i] = items[i]
			end
		end
		queue.n = n + got
		queue.ends = got < ask
		if marked > 0 then
			queue_sweep(queue, n + 1)
			queue.swept = (queue.swept or 0) + got
			if queue.swept >= 1000 and queue.n == n then
				return -- a thousand ended ids in a row: the next call goes on
			end
		end
	end
end

-- How many can be taken right now, at most `want`.
function queue_ready(queue, want)
	queue_fill(queue, want)
	local ready = queue.n - queue.at
	if ready == 0 and queue.ends then
		queue_close(queue)
	end
	return min(ready, want)
end

function queue_skip(queue, taken)
	queue.at = queue.at + taken
	if queue.ends and queue.at == queue.n then
		queue_close(queue)
	end
end

local function queue_store(queue)
	local pulled = queue.pulled
	for i = 1, pulled and #pulled or 0 do
		call('LREM', queue.name, 1, pulled[i])
	end
	if queue.at > 0 then
		call('LTRIM', queue.name, number_text(queue.at), '-1')
	end
end

-- True if ended ids were all that could be read of some list.
function lists.are_cut_short()
	for i = 1, queue_n do
		if not queue_list[i].ends and queue_list[i].n == queue_list[i].at then
			return true
		end
	end
	return false
end

function lists.check()
	for i = 1, #push_list do
		call('LLEN', push_list[i].name)
	end
end

function lists.store()
	for i = 1, queue_n do
		queue_store(queue_list[i])
	end
	for i = 1, #push_list do
		push_store(push_list[i])
	end
end

end
