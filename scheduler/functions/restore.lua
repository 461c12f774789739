-- restore.lua - jobs that are alive and stand nowhere, since a list, `later` or leases were
-- deleted by hand.
--
--   whole payload       undecided ──► the scheduler reads it anew and places it
--   split, with a past  later     ──► promote puts it back to its family
--   split, without      dead, `lost`: only its family knew the rest of its request
--   ended, but marked   the mark goes: nobody will meet the id it is for
--
-- Whether one stands somewhere is looked for in this very call: nothing that moves can be
-- missed.  So it walks all that waits, about half a second for a million jobs, and is for
-- `warmq doctor` only.

do

local PAGE = 1000

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

local function end_lost(past, id)
	local reply, ref, trace = payload.hints(id, true)
	local text = 'its place in the queue was lost, and its prefix with it; send it again'
	bury(past, id, true, 'lost', text)
	result_out(id, reply, DAY, end_result(id, 'dead', 'lost', text, ref, trace))
	return 'dead'
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
	if past.family ~= '' and (BAND[past.band] or past.now == '1') then
		job.push_later(past, now, past.reason)
	elseif kind == 'entry' and payload.to_slim(id) or kind == 'slim' and job.is_whole(id) then
		job.decide_anew(past, id)
	else
		return end_lost(past, id)
	end
	return 'queued'
end

-- restore id…
local function restore()
	local wanted, answer = {}, { 'OK', now }
	for i = 2, min(argc, 1001) do
		wanted[argv[i]] = is_job(argv[i]) or nil
	end
	local found = job.leased_among(wanted)
	lists_walk(wanted, found)
	level, marked = true, call('HLEN', key.ended)
	for i = 2, min(argc, 1001) do
		local id = argv[i]
		answer[i + 1] = wanted[id] and restore_one(id, found) or 'gone'
		found[id] = true -- once
	end
	book_check()

	book_store()
	deliver()
	return answer
end

register('restore', restore)

end
