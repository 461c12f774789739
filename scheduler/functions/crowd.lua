-- crowd.lua - admission into families that have work already: the usual run.
--
-- Its list is not empty, its lanes are open: nothing changes but the list.  Even so every
-- lane is written into its open set, as it should be and not only where it changed: a
-- member that was lost is lost until the next job, not for ever.
--
-- All runs of a family go this way or none.  Families that `F` names, lists that may be
-- empty, lanes that are shut, moved or unknown go the long way (admit.lua), which also
-- keeps hold clocks and wakes.

local crowd = {} -- open, has, take, check, store
do

local views -- family -> view, if its runs are of this kind
local lines, lines_n -- { key, from, to, family view } of one RPUSH each

-- What is needed of a family's record, remembered by its text.
local function run_view(rec)
	local view = memo.run_view[rec]
	if not view then
		check_format(rec, 42, 'families')
		view = { rec = rec, bits = sub(rec, 2, 4) + 0, tail = family_tail(rec) }
		view.paused = family_is_paused(view)
		view.kind = view.bits + (family_is_plain(view) and 0 or 128) + (view.paused and 256 or 0)
		memo_grow()
		memo.run_view[rec] = view
	end
	return view
end

-- Of a lane's record, likewise: what stands behind its columns, and its scores by the kind
-- of its family; false if it is shut.
local function lane_view(rec)
	local view = memo.score[rec]
	if view == nil then
		view = byte(rec, 1) == 49 and byte(rec, 97) == 124 and byte(rec, 2) >= 51 and
			{ rec = rec, tail = lane_tail(rec) }
		memo_grow()
		memo.score[rec] = view
	end
	return view
end

-- Where the lane belongs, as text; '' if nowhere.
local function score_text(lane, family)
	local text = lane[family.kind]
	if not text then
		local rec = lane.rec
		local score = lane_score(rec, sub(rec, 18, 22) + 0, family, family.bits, family.paused)
		text = score and format('%.1f', score) or ''
		lane[family.kind] = text
	end
	return text
end

local function is_ordinary(lane, family)
	local tail = lane and lane.tail
	return tail and tail.pool == family.tail.pool and tail.budget == family.tail.budget and
		tail.family ~= ''
end

-- Lanes of those families, in one go: their places are written, or the family is dropped.
local function lanes_place(ids)
	local lane_ids, owners, n = {}, {}, 0
	for i = 1, #ids do
		local of = views[ids[i]] and views[ids[i]].tail.lanes or {}
		for j = 1, #of do
			n = n + 1
			lane_ids[n], owners[n] = of[j], ids[i]
		end
	end
	local found = {}
	for from = 1, n, 1000 do
		local got = call('HMGET', key.lanes, unpack(lane_ids, from, min(n, from + 999)))
		for i = 1, #got do
			local lane, owner = got[i] and lane_view(got[i]), owners[from + i - 1]
			found[from + i - 1] = lane
			if views[owner] and not is_ordinary(lane, views[owner]) then
				views[owner] = nil
			end
		end
	end
	for i = 1, n do
		local family = views[owners[i]]
		if family then
			local text, open = score_text(found[i], family), found[i].tail.open
			family.open = family.open or text ~= ''
			if text ~= '' then
				set_add(open, text, lane_ids[i])
			else
				set_del(open, lane_ids[i])
			end
		end
	end
end

-- ids: families with runs that no F names; needed[id]: the bit of the only list they go to,
-- false if there are several.  Those that are not of this kind are put into the book.
function crowd.open(ids, needed)
	views, lines, lines_n = {}, {}, 0
	for from = 1, #ids, 1000 do
		local recs = call('HMGET', key.families, unpack(ids, from, min(#ids, from + 999)))
		for i = 1, #recs do
			local id, rec = ids[from + i - 1], recs[i]
			local view = rec and run_view(rec)
			if view and needed[id] and floor(view.bits / needed[id]) % 2 == 1 and
				#view.tail.lanes > 0 then
				views[id] = view
				view.open = false
			else
				family_take(id, rec)
			end
		end
	end
	lanes_place(ids)
	for i = 1, #ids do
		if not views[ids[i]] and not families[ids[i]] then
			family_of(ids[i])
		end
	end
end

function crowd.has(id)
	return views[id] ~= nil
end

-- Takes argv[from..to] for one of its lists; false if the family is not of this kind.
function crowd.take(id, list, from, to)
	local family = views[id]
	if not family then
		return false
	end
	lines_n = lines_n + 1
	lines[lines_n] = { key.ns .. list[1] .. id, from, to, family }
	return true
end

function crowd.check()
	for i = 1, lines_n do
		call('LLEN', lines[i][1])
	end
end

function crowd.store()
	for i = 1, lines_n do
		local line = lines[i]
		local size = call('RPUSH', line[1], unpack(argv, line[2], line[3]))
		if line[4].open and size == line[3] - line[2] + 1 then
			wake(line[4].tail.pool) -- it had run empty, and its bit stood still
		end
	end
end

end
