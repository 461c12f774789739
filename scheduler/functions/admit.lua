-- admit.lua - from the inbox into the lists, exactly once.
--
-- A compare-and-set on the cursor (entry, n): what was admitted is not admitted again, by
-- the same leader after a lost reply, or by another one.  Segments, slim payloads and
-- records are written in the same call, so that they exist iff their jobs do.
--
-- The words come as counted groups in a fixed order; `Group` finds them once, then each
-- part reads its own.

local family_number, family_parent
do

local GROUPS = { { 'F', 11 }, { 'X', 2 }, { 'R', 3 }, { 'E', 1 }, { 'S', 2 }, { 'L', 5 },
	{ 'D', 7 }, { 'T', 2 }, { 'G', 1 }, { 'P', 2 } }
local LIST_OF = { h = READY[1], n = READY[2], l = READY[3], now = NOW }

-- letter -> { first argument, count }
local function groups_find(at)
	local groups = {}
	for i = 1, #GROUPS do
		local letter, width = GROUPS[i][1], GROUPS[i][2]
		if argv[at] ~= letter then
			refuse(letter, 'expected this group, got "' .. sub(argv[at] or '', 1, 40) .. '"')
		end
		local n = number_at(at + 1, letter, 10000)
		groups[letter] = { at + 2, n }
		at = at + 2 + n * width
	end
	groups.U = { at, 0 } -- the only one that may be left out
	if argv[at] == 'U' then
		groups.U = { at + 2, number_at(at + 1, 'U', 10000) }
		at = at + 2 + groups.U[2]
	end
	if at ~= argc + 1 then
		refuse('arguments', 'the groups do not add up')
	end
	return groups
end

-- ---- ids ---------------------------------------------------------------------------

local function is_entry(text)
	return is_job(text) and not find(text, '.', 1, true)
end

-- In the usual element no digit of its sequence but the last is a zero; all others are
-- looked at closely.
local function is_element(text)
	if find(text, '^[1-9]%d+%-[1-9]*%d~?$') and #text < 22 then
		return true
	end
	local id, size = match(text, '^([^~/]+)~?(.*)$')
	return id ~= nil and is_job(id) and
		(size == '' or (#size < 20 and find(size, '^/%d+,%d+$') ~= nil))
end

local function ids_check_group(group, letter, width, is_id)
	for i = group[1], group[1] + width * (group[2] - 1), width do
		if not is_id(argv[i]) then
			refuse(letter, 'not an id: "' .. sub(argv[i], 1, 40) .. '"')
		end
	end
end

-- The elements, of which there are many: of those of one millisecond only the first is read
-- up to its dash, and the others behind it.
local function elements_check(group)
	local heads = {}
	for i = group[1], group[1] + group[2] - 1 do
		local text = argv[i]
		local head = sub(text, 1, 14)
		if not heads[head] or #text > 21 or not find(text, '^[1-9]%d*$', 15) then
			if not is_element(text) then
				refuse('E', 'not an id: "' .. sub(text, 1, 40) .. '"')
			end
			heads[head] = find(head, '^[1-9]%d+%-$')
		end
	end
end

-- What stands in a list is believed by everybody who meets it there: this is the only door.
local function ids_check(groups)
	elements_check(groups.E)
	ids_check_group(groups.S, 'S', 2, is_job)
	ids_check_group(groups.L, 'L', 5, is_job)
	ids_check_group(groups.D, 'D', 7, is_job)
	ids_check_group(groups.T, 'T', 2, is_job)
	ids_check_group(groups.G, 'G', 1, is_entry)
	ids_check_group(groups.U, 'U', 1, is_job)
end

-- ---- families ----------------------------------------------------------------------

function family_number(family, first, last)
	return sub(family.rec, first, last) + 0
end

-- Calls for the family above, which counts its children; made if it is not there.
function family_parent(px, id)
	local list = list_of(px)
	for i = #list, 1, -1 do
		if list[i] ~= id then
			return list[i], concat(list, ',', 1, i)
		end
	end
end

local function family_make(id, flags, fields)
	local family = family_of(id)
	if family.missing then
		family.missing, family.fresh = nil, true
		family.rec = family_print(0, flags, 0, 0, 0, 0, 0, fields)
		family.tail = family_tail(family.rec)
		local above, px = family_parent(family.tail.px, id)
		if above then
			local tail = family.tail
			local parent = family_make(above, 0,
				'|' .. tail.pool .. '|' .. tail.budget .. '|||' .. px .. '|')
			parent.live = parent.live + 1
		end
	end
	return family
end

-- F: family pool budget flags hold_max in_est out_est lanes ancestors px route[|model]
local function family_admit(at, unders)
	local id = argv[at]
	local fields = '|' .. concat(argv, '|', at + 1, at + 2) .. '|' ..
		concat(argv, '|', at + 7, at + 10)
	local flags = number_at(at + 3, 'flags', 99)
	local hold = min(number_at(at + 4, 'hold_max'), 99999999)
	local input, output = number_at(at + 5, 'in_est'), number_at(at + 6, 'out_est')
	local family = family_make(id, flags, fields)
	local was_unheld = family_is_unheld(family)
	local old_hold = family_number(family, 17, 24)
	if old_hold > 0 and family.bits % 64 > 0 and (hold == 0 or old_hold < hold) then
		hold = old_hold -- the smallest of those that wait
	end
	local paused = family_is_paused(family)
	if paused ~= (flags % 2 == 1) then -- who admits has not heard of it, or has forgotten
		say('pause ' .. (paused and 'on ' or 'off ') .. id)
	end
	flags = flags - flags % 2 + (paused and 1 or 0)
	family.joined = flags % 4 >= 2 and family_number(family, 5, 6) % 4 < 2
	family.rec = family_print(family.bits, flags, family_number(family, 7, 16), hold,
		min(input, 99999999), min(output, 99999999), byte(family.rec, 41) - 48, fields)
	local old = family.tail
	family.tail = family_tail(family.rec)
	if family.joined or family_is_unheld(family) ~= was_unheld then
		family.pushed = true -- so that its lanes are looked at
	end
	if old ~= family.tail or family.fresh then
		family.fresh = family.fresh or old.lanes ~= family.tail.lanes -- those have no record yet
		local ancestors = family.tail.ancestors
		for i = 1, #ancestors do
			unders[#unders + 1] = { ancestors[i], id }
		end
		family.pushed = true -- its lanes may be new
	end
end

local function family_check_arguments(at)
	local id, pool, budget = argv[at], argv[at + 1], argv[at + 2]
	if #id ~= 32 or find(id, '[^0-9a-f]') then
		refuse('F', 'expected 32 hex digits, got "' .. sub(id, 1, 40) .. '"')
	end
	if not is_name(pool) or budget == '' or find(budget, '[|,*%s]') then
		refuse('F', 'pool or budget of ' .. id .. ' is not a name')
	end
	for i = at + 7, at + 10 do
		local text = i == at + 10 and gsub(argv[i], '|', '', 1) or argv[i]
		if find(text, '[|%c]') then
			refuse('F', 'a bar or control character in a field of ' .. id)
		end
	end
end

-- Segments and records that are neither stored nor sent along.
local function needs(groups)
	local sent, asked, wanted = {}, {}, {}
	local at, n = groups.X[1], groups.X[2]
	for i = 0, n - 1 do
		sent[argv[at + 2 * i]] = true
	end
	at, n = groups.F[1], groups.F[2]
	local made = {}
	for i = 0, n - 1 do
		local px = list_of(argv[at + 11 * i + 9])
		made[argv[at + 11 * i]] = true
		for j = 1, #px do
			if not sent[px[j]] and not asked[px[j]] then
				asked[px[j]] = true
				if call('EXISTS', key.ns .. 'px:' .. px[j]) == 0 then
					wanted[#wanted + 1] = px[j]
				end
			end
		end
	end
	local function need_family(id)
		if not made[id] and not asked[id] and not crowd.has(id) and family_of(id).missing then
			asked[id] = true
			wanted[#wanted + 1] = id
		end
	end
	at = groups.R[1]
	for i = at, at + 3 * (groups.R[2] - 1), 3 do
		need_family(argv[i])
	end
	at = groups.L[1]
	for i = at, at + 5 * (groups.L[2] - 1), 5 do
		if argv[i + 2] ~= '' then
			need_family(argv[i + 2])
		end
	end
	return wanted
end

-- ---- what waits, what is dead, what goes -------------------------------------------

-- Families with runs that no F names, and the bit of the list they go to, if it is one.
local function families_of_runs(groups)
	local ids, needed = {}, {}
	for i = groups.R[1], groups.R[1] + 3 * (groups.R[2] - 1), 3 do
		local id, list = argv[i], LIST_OF[argv[i + 1]]
		if not families[id] and list then
			if needed[id] == nil then
				ids[#ids + 1] = id
				needed[id] = list[2]
			elseif needed[id] ~= list[2] then
				needed[id] = false
			end
		end
	end
	return ids, needed
end

local function runs_admit(groups)
	local at, next_element = groups.R[1], groups.E[1]
	local last = groups.E[1] + groups.E[2] - 1
	for _ = 1, groups.R[2] do
		local list, n = LIST_OF[argv[at + 1]], tonumber(argv[at + 2]) or 0
		if not list then
			refuse('R', 'expected h, n, l or now, got "' .. sub(argv[at + 1], 1, 40) .. '"')
		end
		if n < 1 or n % 1 ~= 0 or next_element + n - 1 > last then
			refuse('R', 'the counts and the elements do not add up')
		end
		local to = next_element + n - 1
		if not crowd.take(argv[at], list, next_element, to) then
			push_slice(family_of(argv[at]), list, next_element, to)
		end
		next_element = next_element + n
		at = at + 3
	end
	if next_element ~= last + 1 then
		refuse('R', 'the counts and the elements do not add up')
	end
end

-- The named prefix of a slim payload.
local function prefix_named(bytes)
	local header = sub(bytes, 1, find(bytes, '\n\n', 1, true) or 0)
	return match(header, '\nprefix ([%w._-]+)') or ''
end

-- L: id due family band bytes.  Without a family nobody knows yet where it belongs: its
-- named prefix is missing.
local function delayed_one(i)
	local past = past_of(argv[i])
	local list = argv[i + 3]
	if not LIST_OF[list] then
		refuse('L', 'expected h, n, l or now, got "' .. sub(list, 1, 40) .. '"')
	end
	past.family, past.element = argv[i + 2], argv[i] .. '~'
	past.band, past.now = list == 'now' and 'h' or list, list == 'now' and '1' or ''
	payload.new_slim(argv[i], argv[i + 4])
	note('laters', number_at(i + 1, 'due'), argv[i])
	past.reason, past.dirty = 'delayed', true
	if past.family == '' then
		past.reason, past.why = 'undecided', prefix_named(argv[i + 4])
	end
	family_count(argv[i + 2], 1)
end

local function delayed_admit(at, n, over)
	for i = at, at + 5 * (n - 1), 5 do
		if not over[argv[i]] then
			delayed_one(i)
		end
	end
end

-- U: ids that were undecided and are placed by the other groups now.
local function undecided_end(groups)
	local kept = {} -- whose history goes on
	for _, group in ipairs({ { groups.D, 7 }, { groups.L, 5 } }) do
		for i = 0, group[1][2] - 1 do
			kept[argv[group[1][1] + i * group[2]]] = true
		end
	end
	for i = groups.U[1], groups.U[1] + groups.U[2] - 1 do
		local id = argv[i]
		if not kept[id] then
			note('pasts_gone', key.ns .. 'past:' .. id)
		end
		set_del(key.later, id)
		note('slims_gone', key.ns .. 'slim:' .. id)
	end
end

-- D: id reason text bytes reply result_ttl result
local function dead_one(i)
	local id, bytes = argv[i], argv[i + 3]
	if bytes ~= '' then
		payload.new_slim(id, bytes)
	end
	bury(past_of(id), id, bytes ~= '', argv[i + 1], argv[i + 2])
	result_out(id, argv[i + 4], number_at(i + 5, 'result_ttl'), argv[i + 6] ~= '' and
		argv[i + 6] or end_result(id, 'dead', argv[i + 1], argv[i + 2]))
end

local function dead_admit(at, n, over)
	for i = at, at + 7 * (n - 1), 7 do
		if not over[argv[i]] then
			dead_one(i)
		end
	end
end

-- Budgets of a pool, so that a session with "*" finds them.
local function pool_learn(pool, budget, known)
	local names = known[pool] or call('HGET', key.pools, pool) or ''
	if not find(',' .. names .. ',', ',' .. budget .. ',', 1, true) then
		names = names == '' and budget or names .. ',' .. budget
		known[#known + 1] = pool
	end
	known[pool] = names
end

local function pools_store(known)
	for i = 1, #known do
		call('HSET', key.pools, known[i], known[known[i]])
	end
end

local function admit_store(groups, unders, over)
	local at = groups.X[1]
	for i = at, at + 2 * (groups.X[2] - 1), 2 do
		if call('EXISTS', key.ns .. 'px:' .. argv[i]) == 0 then
			call('SET', key.ns .. 'px:' .. argv[i], argv[i + 1])
		end
	end
	at = groups.P[1]
	for i = at, at + 2 * (groups.P[2] - 1), 2 do
		call('SET', key.ns .. 'prefix:' .. argv[i], argv[i + 1])
	end
	at = groups.T[1]
	for i = at, at + 2 * (groups.T[2] - 1), 2 do
		if not over[argv[i]] then
			call('ZADD', key.deadline, argv[i + 1], argv[i])
		end
	end
	for i = 1, #unders do
		call('SADD', key.ns .. 'under:' .. unders[i][1], unders[i][2])
	end
end

-- Nobody shared the leaf, so its lane let everybody start, without a marker.  Now somebody
-- does: the jobs of this call must not start like that before the scheduler has had its
-- say, which is one call later.
local function lanes_shut()
	for i = 1, family_n do
		local family = family_list[i]
		for j = 1, family.joined and #family.tail.lanes or 0 do
			local lane = lane_of(family.tail.lanes[j])
			if lane_is_unshared(lane.rec) then
				lane.rec = '100' .. sub(lane.rec, 4)
			end
		end
	end
end

-- Everything that is read about the small groups, and what may be wrong with them.
local function admit_check(groups, unders, over)
	local at = groups.P[1]
	for i = at, at + 2 * (groups.P[2] - 1), 2 do
		if not is_name(argv[i]) then
			refuse('P', 'not a name: "' .. sub(argv[i], 1, 40) .. '"')
		end
	end
	at = groups.T[1]
	for i = at, at + 2 * (groups.T[2] - 1), 2 do
		number_at(i + 1, 'deadline')
	end
	if groups.T[2] > 0 then
		call('ZCARD', key.deadline)
	end
	at = groups.S[1]
	for i = at, at + 2 * (groups.S[2] - 1), 2 do
		if not over[argv[i]] then
			payload.new_slim(argv[i], argv[i + 1])
		end
	end
	for i = groups.G[1], groups.G[1] + groups.G[2] - 1 do
		payload.entry_gone(argv[i])
	end
	for i = 1, #unders do
		call('SCARD', key.ns .. 'under:' .. unders[i][1])
	end
end

-- admit owner from_entry from_n to_entry to_n, then the groups
local function admit()
	local groups = groups_find(7)
	local to = text_at(5, 'to_entry') .. ' ' .. number_at(6, 'to_n')
	if not is_entry(argv[5]) then
		refuse('to_entry', 'not an id: "' .. sub(argv[5], 1, 40) .. '"')
	end
	ids_check(groups)
	local got = call('HMGET', key.meta, 'owner', 'cursor')
	if got[1] ~= argv[2] then
		return { 'EPOCH', got[1] or '' }
	end
	if got[2] ~= argv[3] .. ' ' .. argv[4] then
		local entry, n = match(got[2] or '', '^(%S+) (%d+)$')
		return { 'CURSOR', entry or '', n or '' }
	end
	local at, n = groups.F[1], groups.F[2]
	local ids, pools, unders = {}, {}, {}
	for i = at, at + 11 * (n - 1), 11 do
		family_check_arguments(i)
		ids[#ids + 1] = argv[i]
		pool_learn(argv[i + 1], argv[i + 2], pools)
	end
	records_load(ids, families, key.families, family_take)
	crowd.open(families_of_runs(groups))
	local wanted = needs(groups)
	if #wanted > 0 then
		return { 'NEED', unpack(wanted) }
	end
	for i = groups.U[1], groups.U[1] + groups.U[2] - 1 do
		if not call('ZSCORE', key.later, argv[i]) then
			return { 'GONE', argv[i] } -- cancelled meanwhile, or placed already
		end
	end
	level, admitting = true, true
	for i = at, at + 11 * (n - 1), 11 do
		family_admit(i, unders)
	end
	runs_admit(groups)
	undecided_end(groups)
	local over = early.take(groups, argv[3])
	early.expire(groups, over)
	delayed_admit(groups.L[1], groups.L[2], over)
	dead_admit(groups.D[1], groups.D[2], over)
	admit_check(groups, unders, over)
	local lane_ids = {}
	for i = 1, family_n do
		for j = 1, family_list[i].pushed and #family_list[i].tail.lanes or 0 do
			lane_ids[#lane_ids + 1] = family_list[i].tail.lanes[j]
		end
	end
	records_load(lane_ids, lanes, key.lanes, lane_take)
	lanes_shut()
	book_check()
	crowd.check()

	book_store()
	crowd.store()
	pools_store(pools)
	admit_store(groups, unders, over)
	call('HSET', key.meta, 'cursor', to)
	deliver()
	return { 'OK', now }
end

register('admit', admit)

end
