-- early.lua - jobs that ended before they were admitted.
--
--   cancel ─► entry deleted, early[id] ─► admit: its payload does not come back
--   deadline passed in the inbox        ─► admit: ends as expired, is not started
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

-- The payloads that this call brings along for `late` ids.
local function payloads_of(groups, late)
	local texts = {}
	for i = groups.S[1], groups.S[1] + 2 * (groups.S[2] - 1), 2 do
		texts[argv[i]] = late[argv[i]] and argv[i + 1]
	end
	for i = groups.L[1], groups.L[1] + 5 * (groups.L[2] - 1), 5 do
		texts[argv[i]] = late[argv[i]] and argv[i + 4]
	end
	return texts
end

local function expire_one(id, slim, text)
	local reply, ref, trace = payload.hints(id, slim, text)
	result_out(id, reply, DAY, end_result(id, 'expired', 'expired', '', ref, trace))
	say('ended ' .. id .. ' expired')
	note('pasts_gone', key.ns .. 'past:' .. id)
	if not slim then
		payload.entry_gone(id)
	end
end

-- Jobs whose deadline has passed before they are admitted, as after a night without a
-- scheduler: a list is claimed from at once, and what nobody wants any more would be paid
-- for before `expire` comes by.  Check phase.
function early.expire(groups, over)
	local late
	for i = groups.T[1], groups.T[1] + 2 * (groups.T[2] - 1), 2 do
		if number_at(i + 1, 'deadline') <= now and not over[argv[i]] then
			late = late or {}
			late[argv[i]] = true
		end
	end
	if not late then
		return
	end
	local texts = payloads_of(groups, late)
	for i = groups.E[1], groups.E[1] + groups.E[2] - 1 do
		local id = element_id(argv[i])
		if late[id] then
			expire_one(id, element_is_slim(argv[i]), texts[id])
			note('marks_new', id, 'expired')
			over[id] = true
		end
	end
	for i = groups.L[1], groups.L[1] + 5 * (groups.L[2] - 1), 5 do
		if late[argv[i]] then
			expire_one(argv[i], true, texts[argv[i]])
			over[argv[i]] = true
		end
	end
end

end
