-- restore.lua - jobs that are alive and stand nowhere, since a list, `later`, `dead` or
-- leases were deleted by hand.
--
--   whole payload       undecided ──► the scheduler reads it anew and places it
--   with a past         later     ──► promote puts it back to its family, when it is due
--   split, without      dead, `lost`: only its family knew the rest of its request
--   died, says its past dead again: its producer has its result, and nobody asked for more
--   its result stands   it has ended, and somebody brought its payload back: that goes
--   ended, but marked   the mark goes: nobody will meet the id it is for
--
-- Whether one stands somewhere is looked for in this very call: nothing that moves can be
-- missed.  So it walks all that waits, about half a second for a million jobs, and is for
-- `warmq doctor` only.

do

local PAGE = 1000

local touched -- families to which this call gives something back

-- Adds those of `wanted` that stand in one list to `found`.
local function list_walk(name, wanted, found)
	local from = 0
	repeat
		local elements = call('LRANGE', name, from, from + PAGE - 1)
		for i = 1, #elements do
			local id = element_id(elements[i])
			if wanted[id] then
				found[id] = true
			end
		end
		from = from + PAGE
	until #elements < PAGE
end

local function lists_walk(wanted, found)
	local ids = call('HKEYS', key.families)
	for i = 1, #ids do
		for j = 1, #LISTS do
			list_walk(key.ns .. LISTS[j][1] .. ids[i], wanted, found)
		end
	end
end

-- What stands in a past of one that is not dead; all other words are reasons of a death.
-- `unsent` is both: so long nobody is deferred.
local ALIVE = { [''] = true, retry = true, defer = true, unsent = true, delayed = true,
	undecided = true }

local function has_died(past)
	return not ALIVE[past.reason] or
		past.reason == 'unsent' and past.deferred_at > 0 and now - past.deferred_at > DAY
end

-- As `requeue` does: the payload of one that waited long has left the stream.
local function element_mend(past, kind)
	if kind == 'slim' and not element_is_slim(past.element) then
		past.element = (gsub(past.element, '^[^/]+', '%0~'))
	end
end

local HEADER_MAX = 8192 -- bytes before a body

-- When the job may start, if somebody has said so.
local function due_of(id, past)
	local head = past.reason == 'delayed' and
		call('GETRANGE', key.ns .. 'slim:' .. id, 0, HEADER_MAX) or ''
	local header = sub(head, 1, find(head, '\n\n', 1, true) or 0)
	return max(now, (match(header, '\nnot_before (%d+)\n') or 0) + 0)
end

local function restore_past(past, id, kind)
	element_mend(past, kind)
	touched[past.family] = true
	if has_died(past) then
		bury(past, id, kind == 'slim', past.reason, past.why)
		return 'died'
	end
	job.push_later(past, due_of(id, past), past.reason)
	return 'queued'
end

local function restore_one(id, found)
	if found[id] or call('ZSCORE', key.later, id) or call('ZSCORE', key.dead, id) then
		return 'stands'
	end
	if job.is_ended(id) then
		note('marks_gone', id)
		note('pasts_gone', key.ns .. 'past:' .. id)
		return 'gone'
	end
	local kind = job.is_admitted(id) and job.payload_kind(id)
	if not kind or kind == 'entry' and job.is_pack(id) then
		return 'gone'
	end
	local past = past_of(id)
	if not has_died(past) and call('EXISTS', key.ns .. 'result:' .. id) == 1 then
		finish(id, kind == 'slim', true)
		return 'ended'
	elseif has_died(past) or past.family ~= '' and (BAND[past.band] or past.now == '1') then
		return restore_past(past, id, kind)
	end
	return job.place_anew(past)
end

-- How many members of a set belong to each family that was touched.
local function members_count(name, counts)
	local from = 0
	repeat
		local ids = call('ZRANGE', name, from, from + PAGE - 1)
		for i = 1, #ids do
			local family = call('HGET', key.ns .. 'past:' .. ids[i], 'family')
			if touched[family or ''] then
				counts[family] = (counts[family] or 0) + 1
			end
		end
		from = from + PAGE
	until #ids < PAGE
end

-- Whoever deleted `later` or `dead` left their jobs in the sums of their families, which
-- would be kept for ever: what this call adds is added to what is there.
local function lives_recount()
	touched[''] = nil
	if not next(touched) then
		return
	end
	local counts = {}
	members_count(key.later, counts)
	members_count(key.dead, counts)
	local rows = call('HGETALL', key.families)
	for i = 1, #rows, 2 do
		local above = family_parent(family_tail(rows[i + 1]).px, rows[i])
		if touched[above or ''] then
			counts[above] = (counts[above] or 0) + 1
		end
	end
	for id in pairs(touched) do
		local family = family_of(id)
		if not family.missing then
			family.live = family.live + (counts[id] or 0) - family_number(family, 7, 16)
		end
	end
end

-- restore id…
local function restore()
	local wanted, answer = {}, { 'OK', now }
	for i = 2, min(argc, 1001) do
		wanted[argv[i]] = is_job(argv[i]) or nil
	end
	local found = job.leased_among(wanted)
	lists_walk(wanted, found)
	level, marked, touched = true, call('HLEN', key.ended), {}
	for i = 2, min(argc, 1001) do
		local id = argv[i]
		answer[i + 1] = wanted[id] and restore_one(id, found) or 'gone'
		found[id] = true -- once
	end
	lives_recount()
	book_check()

	book_store()
	deliver()
	return answer
end

register('restore', restore)

end
