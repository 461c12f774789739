-- forget.lua - records that nobody has needed for an hour, as an audit meets them.
--
--   no job, no child ──► unused[id] = now ──► an hour later: records, segment, sets go
--          ▲ a job comes: out of `unused`
--
-- A pause is somebody's word: what is paused stays, or its next job would start.
--
-- A family answers for the lanes that it lists; a lane of a node that is nobody's leaf is
-- needed as long as a family lists it as an ancestor.  What goes is collected here and
-- deleted behind book_store.

local forget = {} -- open, family, lane, store
do

local UNUSED_MAX = 3600000
local forgotten -- keys and fields that go: { command, key, member… }

function forget.open()
	forgotten = {}
end

local function lane_forget(lane)
	forgotten[#forgotten + 1] = { 'HDEL', key.lanes, lane.id }
	forgotten[#forgotten + 1] = { 'ZREM', lane.tail.open, lane.id }
	forgotten[#forgotten + 1] = { 'ZREM', lane.tail.held, lane.id }
	forgotten[#forgotten + 1] = { 'DEL', key.ns .. 'under:' .. lane.id }
end

local function family_forget(family)
	local tail = family.tail
	forgotten[#forgotten + 1] = { 'HDEL', key.families, family.id }
	forgotten[#forgotten + 1] = { 'DEL', key.ns .. 'px:' .. family.id }
	for i = 1, #tail.ancestors do
		forgotten[#forgotten + 1] = { 'SREM', key.ns .. 'under:' .. tail.ancestors[i], family.id }
	end
	local above = family_parent(tail.px, family.id)
	if above then
		family_count(above, -1)
	end
	say('forgot ' .. family.id)
end

-- True once nobody has needed `id` for an hour.
local function is_unused(id, used)
	local since = call('ZSCORE', key.unused, id)
	if used then
		if since then
			set_del(key.unused, id)
		end
		return false
	end
	if not since then
		set_add(key.unused, now, id)
		return false
	end
	if now - since < UNUSED_MAX then
		return false
	end
	set_del(key.unused, id)
	return true
end

local function lane_is_used(lane)
	local state = byte(lane.rec, 68)
	return lane.use > 0 or state == 49 or state == 50
end

function forget.family(family)
	local used = family.bits > 0 or family_number(family, 7, 16) > 0 or
		family_is_paused(family)
	for i = 1, #family.tail.lanes do
		local lane = lanes[family.tail.lanes[i]]
		used = used or (lane ~= nil and lane_is_used(lane))
	end
	if is_unused(family.id, used) then
		family_forget(family)
		for i = 1, #family.tail.lanes do
			local lane = lanes[family.tail.lanes[i]]
			if lane and not lane.missing then
				lane_forget(lane)
			end
		end
	end
end

-- Of a node that is nobody's leaf.
function forget.lane(lane)
	if is_unused(lane.id, lane_is_used(lane) or
		call('HEXISTS', key.families, sub(lane.id, 1, 32)) == 1 or
		call('SCARD', key.ns .. 'under:' .. lane.id) > 0) then
		lane_forget(lane)
	end
end

function forget.store()
	for i = 1, #forgotten do
		call(unpack(forgotten[i]))
	end
end

end
