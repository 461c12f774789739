-- early.lua - jobs that ended before they were admitted.
--
--   cancel ─► entry deleted, early[id] ─► admit: its payload does not come back
--
-- The scheduler may have read the entry already; then the job comes along in an `admit`
-- like all others, and what it says there was true when it was read.  A job in a list
-- leaves an end mark as if it had been cancelled there; one that would wait until later,
-- or is dead, is left out.  Marks of entries that nobody had read go once the cursor has
-- passed them.

local early = {}
do

local CLEAN_MAX = 1000 -- marks that the cursor has passed, removed by one call

function early.note(id)
	set_add(key.early, format('%.0f', (id_split(id))), id)
end

local function take(over, id)
	if call('ZSCORE', key.early, id) then
		over[id] = true
		set_del(key.early, id)
	end
	return over[id]
end

-- The ids of this call that have ended, of all groups with jobs.  Check phase.
function early.take(groups, cursor)
	local over = {}
	if call('ZCARD', key.early) == 0 then
		return over
	end
	for i = groups.E[1], groups.E[1] + groups.E[2] - 1 do
		local id = element_id(argv[i])
		if take(over, id) then
			note('marks_new', id, 'early')
		end
	end
	for i = groups.L[1], groups.L[1] + 5 * (groups.L[2] - 1), 5 do
		take(over, argv[i])
	end
	for i = groups.D[1], groups.D[1] + 7 * (groups.D[2] - 1), 7 do
		take(over, argv[i])
	end
	local passed = call('ZRANGEBYSCORE', key.early, '-inf',
		'(' .. format('%.0f', (id_split(cursor))), 'LIMIT', 0, CLEAN_MAX)
	for i = 1, #passed do
		set_del(key.early, passed[i])
	end
	return over
end

end
