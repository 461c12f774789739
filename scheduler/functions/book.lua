-- book.lua - what one call has read and is going to write: its working set.
--
-- lane_of, family_of, budget_of, past_of read a record once and keep it for the call;
-- functions change what they hold; book_check makes the last reads; book_store writes
-- all of it.  So a function is atomic in the sense that matters: it stops before its
-- first write, or it runs to the end.  (The first write is the XDEL of payloads, the only
-- one whose key was not read: if it fails, nothing has happened.)
--
--   family  { id rec was bits bits_was live tail pushed }   live: the change, not the sum
--   lane    { id rec was use use_was tail family }          family: nil until joined
--
-- A record that is missing is zero: it is worked with and not written, unless `admit`,
-- `grant` or a returned job revives it.

local lanes, lane_list, lane_n
local families, family_list, family_n
local level -- true: memberships are written as they should be, changed or not
local admitting -- true: an empty family that gets work is no news

local entries_gone, entries_n = {}, 0 -- payloads that end: stream ids
local results, results_n = {}, 0 -- id, reply, ttl, result

-- The rarer writes, each a flat list made when it is first needed: slims_gone (keys),
-- slims_new (id bytes), pasts_gone (keys), marks_gone (ids), marks_new (id reason),
-- graves (time id), laters (due id), slots_gone ({ key slot… } of each session).
local book

local function note(name, first, second)
	local list = book[name]
	if not list then
		list = {}
		book[name] = list
	end
	list[#list + 1] = first
	list[#list + 1] = second
end

-- ---- records -----------------------------------------------------------------------

local function lane_take(id, rec)
	local lane = { id = id }
	if rec then
		check_format(rec, 97, 'lanes')
		lane.was = rec
	else
		rec = LANE_BLANK .. '|||||'
		lane.missing = true
	end
	lane.rec = rec
	lane.use = sub(rec, 18, 22) + 0
	lane.use_was = lane.use
	lane.tail = lane_tail(rec)
	lanes[id] = lane
	lane_n = lane_n + 1
	lane_list[lane_n] = lane
	return lane
end

local function lane_of(id)
	return lanes[id] or lane_take(id, call('HGET', key.lanes, id))
end

local FAMILY_BLANK = family_print(0, 0, 0, 0, 0, 0, 0, '||||||')

local function family_take(id, rec)
	local family = { id = id, live = 0 }
	if rec then
		check_format(rec, 42, 'families')
		family.was = rec
	else
		rec = FAMILY_BLANK
		family.missing = true
	end
	family.rec = rec
	family.bits = sub(rec, 2, 4) + 0
	family.bits_was = family.bits
	family.tail = family_tail(rec)
	families[id] = family
	family_n = family_n + 1
	family_list[family_n] = family
	return family
end

local function family_of(id)
	return families[id] or family_take(id, call('HGET', key.families, id))
end

-- Reads those of `ids` that are not there yet in one go.
local function records_load(ids, known, hash, take)
	local wanted, n = {}, 0
	for i = 1, #ids do
		local id = ids[i]
		if not known[id] and not wanted[id] then
			n = n + 1
			wanted[n] = id
			wanted[id] = true
		end
	end
	for from = 1, n, 1000 do
		local to = min(n, from + 999)
		local recs = call('HMGET', hash, unpack(wanted, from, to))
		for i = from, to do
			take(wanted[i], recs[i - from + 1])
		end
	end
end

-- Gives a lane the family whose jobs it runs; a mere ancestor has none.
local function lane_join(lane)
	local family = lane.family
	if not family and lane.tail.family ~= '' then
		family = family_of(lane.tail.family)
		lane.family = family
	end
	return family
end

local function family_is_paused(family)
	return byte(family.rec, 6) % 2 == 1
end

local UNHELD = {} -- by the two digits of the flags
for flags = 0, 99 do
	UNHELD[format('%02d', flags)] = floor(flags / 8) % 2 == 1
end

-- True if holding is switched off for its route (flag 8): no gate stops its jobs.
local function family_is_unheld(family)
	return UNHELD[sub(family.rec, 5, 6)]
end

local function family_hold_max(family)
	local ms = sub(family.rec, 17, 24) + 0
	return ms > 0 and ms or 30000
end

-- A job comes back to a family whose record is lost: the lane still knows most of it.  False
-- if that is lost as well: no claim would ever look there.
local function family_revive(family, lane)
	local tail = lane.tail
	if tail.pool ~= '' then
		family.rec = family_print(0, 0, 1, 0, 0, 0, 0, '|' .. tail.pool .. '|' .. tail.budget ..
			'|' .. lane.id .. '||' .. tail.px .. '|')
		family.tail = family_tail(family.rec)
		family.missing = nil
		count('lane_drift')
	end
	return tail.pool ~= ''
end

-- ---- memberships -------------------------------------------------------------------

local read_sets -- names of sets whose type is known to be right
local family_is_plain, lane_score, lane_is_held, set_add, set_del, place
local sets = {} -- open, check, store
do

local by_key, set_list -- sets by key, and in order: { name, add = { score, member… }, del }

function sets.open()
	by_key, set_list, read_sets = {}, {}, {}
end

-- True if nothing is asked of a start but to take the next job: no ancestors gate it, no
-- segment is marked.
function family_is_plain(family)
	return byte(family.rec, 41) == 48 and #family.tail.ancestors == 0
end

-- The score of a lane in its open set, nil if it does not belong there.  A half is added
-- where a claim has to look at the family, see swift.lua.
function lane_score(rec, use, family, bits, paused)
	local is_wanted = byte(rec, 68) == 49 -- a ticket: it goes before all bands
	if not is_wanted and (bits == 0 or paused) or use >= sub(rec, 23, 27) + 0 then
		return nil
	end
	if is_wanted then
		return 0
	end
	local view = VIEW[bits]
	local rank = sub(rec, 28, 35) + (view.simple and family_is_plain(family) and 0 or 0.5)
	if byte(rec, 2) >= 51 or (view.held and sub(rec, 14, 16) ~= '000') or
		(bits > 0 and family_is_unheld(family)) then
		return view.class * 1000000000 + rank
	end
	return view.now and 1000000000 + rank or nil
end

function lane_is_held(rec, bits, paused)
	return byte(rec, 2) < 51 and bits % 64 > 0 and not paused
end

local function set_of(name)
	local set = by_key[name]
	if not set then
		set = { name = name, add = {}, del = {} }
		by_key[name] = set
		set_list[#set_list + 1] = set
	end
	return set
end

function set_add(name, score, member)
	local add = set_of(name).add
	add[#add + 1] = score
	add[#add + 1] = member
end

function set_del(name, member)
	local del = set_of(name).del
	del[#del + 1] = member
end

-- Where the hold clock of a lane stands: it starts once and can only be brought forward.
local function hold_start(lane, due)
	local held = lane.tail.held
	local score = call('ZSCORE', held, lane.id)
	if not score or score + 0 > due then
		set_add(held, due, lane.id)
	end
end

-- A lane is held if its own gate is shut, or (`blocked`: a claim has seen it) one above.
-- `due`: where its clock stands from now on, decided by the claim that started from it.
local function place_held(lane, family, paused)
	local free = paused or family_is_unheld(family)
	local is = lane_is_held(lane.rec, family.bits, free) or
		(lane.blocked and family.bits % 64 > 0 and not free)
	local was = lane.was and lane_is_held(lane.was, family.bits_was, family.paused_was)
	if not is then
		set_del(lane.tail.held, lane.id)
	elseif lane.due then
		set_add(lane.tail.held, lane.due, lane.id)
	elseif level or lane.blocked or not was then
		hold_start(lane, now + family_hold_max(family))
	end
end

-- Compares where the lane is with where it belongs, in both sets of its own pool.
function place(lane, family)
	local bits, bits_was, paused, paused_was = 0, 0, false, false
	if family then
		bits, bits_was = family.bits, family.bits_was
		paused = family_is_paused(family)
		paused_was = family.paused_was
		if paused_was == nil then
			paused_was = paused
			family.paused_was = paused
		end
	end
	local after = lane_score(lane.rec, lane.use, family, bits, paused)
	local before = lane.score -- where a claim has found it
	if not before and lane.was then
		before = lane_score(lane.was, lane.use_was, family, bits_was, paused_was)
	end
	if lane.blocked then
		after = nil
	end
	if after ~= before or level then
		if after then
			set_add(lane.tail.open, after, lane.id)
			if not before and not lane.served then
				wake(lane.tail.pool)
			end
		else
			set_del(lane.tail.open, lane.id)
		end
	end
	-- Open before and after, and not below others: it is not held and was not.
	if family and (byte(lane.rec, 2) < 51 or (level and family_is_unheld(family)) or
		lane.blocked or lane.unblocked or
		not lane.was or byte(lane.was, 2) < 51 or
		(#family.tail.ancestors > 0 and bits % 64 == 0 and bits_was % 64 > 0)) then
		place_held(lane, family, paused)
	end
end

function sets.check()
	for i = 1, #set_list do
		if not read_sets[set_list[i].name] then
			call('ZCARD', set_list[i].name)
		end
	end
end

function sets.store()
	for i = 1, #set_list do
		local set = set_list[i]
		for from = 1, #set.del, 1000 do
			call('ZREM', set.name, unpack(set.del, from, min(#set.del, from + 999)))
		end
		for from = 1, #set.add, 1000 do
			call('ZADD', set.name, unpack(set.add, from, min(#set.add, from + 999)))
		end
	end
end

end
