-- grant.lua - what the scheduler decides: who rules, lanes, paces; and what it may look at.
--
-- A grant is a compare-and-set per lane on its generation g: repeating it, or a second
-- scheduler, is harmless.  Within one g only window, rank and the like move, and `until`
-- only upwards; credits, role and ticket belong to a new g.

local LISTS
do

local LANE_ARGS, BUDGET_ARGS = 19, 7

-- rule nonce lease_ms
local function rule()
	local nonce, lease_ms = nonce_at(2), number_at(3, 'lease_ms', DAY)
	local got = call('HMGET', key.meta, 'epoch', 'owner', 'rule_until', 'cursor', 'seed')
	local owner, till = got[2] or '', (got[3] or 0) + 0
	local mine = match(owner, ':(.*)$') == nonce
	local lost = not got[4] and call('EXISTS', key.lanes) == 1
	if not mine and lease_ms > 0 and till > now + lease_ms then
		till = now + lease_ms -- the clock went back: nobody was given so much
		call('HSET', key.meta, 'rule_until', format('%d', till))
	end
	if not mine and till > now then
		return lease_ms > 0 and { 'HELD', owner, till - now } or { 'OK', now, owner, 0 }
	end
	if lease_ms == 0 then
		if mine then
			call('HSET', key.meta, 'rule_until', 0)
		end
		return { 'OK', now, owner, 0 }
	end
	local took = lost and 2 or mine and 0 or 1
	local epoch = (got[1] or 0) + (mine and 0 or 1)
	owner = format('%d', epoch) .. ':' .. nonce

	call('HSET', key.meta, 'format', '1', 'epoch', epoch, 'owner', owner, 'rule_until',
		format('%d', now + lease_ms))
	if not got[4] and not lost then
		call('HSET', key.meta, 'cursor', '0-0 0')
	end
	if not got[5] then -- the nonce is as random as its scheduler could make it
		local time = call('TIME')
		call('HSET', key.meta, 'seed', nonce .. format('%08x%08x', time[1] % 4294967296,
			time[2] + 0))
	end
	return { 'OK', now, owner, took }
end

-- ---- what is looked at -------------------------------------------------------------

LISTS = { BACK[1], READY[1], BACK[2], READY[2], BACK[3], READY[3], NOW }

-- Id time of the oldest waiting job of a family, 0 if there is none.
local function head_ms(family)
	local oldest = 0
	for i = 1, #LISTS do
		if family and floor(family.bits / LISTS[i][2]) % 2 == 1 then
			local element = call('LINDEX', key.ns .. LISTS[i][1] .. family.id, 0)
			local ms = element and id_ms(element) or 0
			if ms > 0 and (oldest == 0 or ms < oldest) then
				oldest = ms
			end
		end
	end
	return oldest
end

-- glance family…
local function glance()
	local answer = { 'OK', now }
	for i = 2, argc do
		local family = family_of(argv[i])
		local backlog, use = 0, 0
		for j = 1, #LISTS do
			backlog = backlog + call('LLEN', key.ns .. LISTS[j][1] .. argv[i])
		end
		for j = 1, #family.tail.lanes do
			use = use + lane_of(family.tail.lanes[j]).use
		end
		answer[i + 1] = { argv[i], backlog, use, head_ms(family) }
	end
	return answer
end

-- ---- lanes -------------------------------------------------------------------------

-- argv[i] as a number that fits `width` digits, or what it was if it says "-".
local function kept(i, name, width, old)
	if argv[i] == '-' then
		return old
	end
	return min(number_at(i, name), WIDTH[width][2])
end

-- An ancestor opened: the lanes below it belong into the open set again, unless another
-- one above them is shut.
local function descendants_open(lane)
	local ids = call('SMEMBERS', key.ns .. 'under:' .. lane.id)
	sort(ids)
	for i = 1, #ids do
		local family = family_of(ids[i])
		local shut = false
		for j = 1, #family.tail.ancestors do
			shut = shut or not gate_is_open(lane_of(family.tail.ancestors[j]))
		end
		for j = 1, shut and 0 or #family.tail.lanes do
			local below = lane_of(family.tail.lanes[j])
			lane_join(below)
			below.unblocked = gate_is_open(below)
		end
	end
end

-- A lane without a record is made: closed, g 0.
local function lane_granted(at)
	local lane = lane_of(argv[at])
	if lane.missing then
		lane.missing = nil
		lane.rec = lane_print(LANE_BLANK, argv[at + 3], argv[at + 4], argv[at + 1], argv[at + 2],
			'')
		lane.tail = lane_tail(lane.rec)
	end
	return lane
end

local function ticket_grant(lane, at)
	local wanted = argv[at + 16]
	local deadline = kept(at + 17, 'ticket_deadline', 14, 0)
	local tail = lane.tail
	if wanted == '-' then
		return
	end
	lane.rec = lane_print(sub(lane.rec, 1, 67) .. (wanted == '1' and '1' or '0') ..
		format('%014d', deadline) .. sub(lane.rec, 83, 96), tail.pool, tail.budget, tail.family,
		tail.px, '')
	lane.tail = lane_tail(lane.rec)
	if wanted == '1' then
		set_add(key.tickets, deadline, lane.id)
	else
		set_del(key.tickets, lane.id)
	end
end

-- The columns of a lane after this grant.
local function lane_columns(lane, at, g, g_new)
	local rec = lane.rec
	local function field(offset, name, first, last)
		return kept(at + offset, name, last - first + 1, sub(rec, first, last) + 0)
	end
	local credits, role = sub(rec, 14, 16), sub(rec, 17, 17)
	local till = field(13, 'until', 36, 49)
	if g_new == g and byte(rec, 2) == 51 then -- a start may have raised it
		till = max(till, sub(rec, 36, 49) + 0)
	elseif g_new ~= g then
		credits = format('%03d', field(9, 'credits', 14, 16))
		role = format('%d', field(10, 'role', 17, 17))
	end
	return '1' .. format('%d%d%010d', field(7, 'gate', 2, 2), field(8, 'reason', 3, 3),
		min(g_new, 9999999999)) .. credits .. role .. sub(rec, 18, 22) ..
		format('%05d%08d%014d%08d%010d', field(11, 'window', 23, 27),
			field(12, 'rank', 28, 35), till, field(14, 'p', 50, 57),
			field(15, 'life', 58, 67)) .. sub(rec, 68)
end

local function lane_grant(at)
	local lane = lane_granted(at)
	local family = lane_join(lane)
	local g, g_new = number_at(at + 5, 'g'), number_at(at + 6, 'g_new')
	local was_open, was_closed = gate_is_open(lane), byte(lane.rec, 2) == 48
	if sub(lane.rec, 4, 13) + 0 ~= g or (g_new ~= g and argv[at + 16] == '1' and
		byte(lane.rec, 68) == 50) then
		return lane, 'refused'
	end
	lane.rec = lane_columns(lane, at, g, g_new)
	if family and floor(sub(family.rec, 5, 6) / 2) % 2 == 1 and lane_is_unshared(lane.rec) then
		lane.rec = '100' .. sub(lane.rec, 4) -- decided before `admit` heard of another job
	end
	if not family and argv[at + 3] ~= '-' and argv[at + 3] ~= '' then
		lane_move(lane, argv[at + 3], argv[at + 4])
	end
	if g_new ~= g then
		ticket_grant(lane, at)
	end
	if family and not family.missing and argv[at + 18] ~= '-' then
		local rec = put(family.rec, 41, 41, number_at(at + 18, 'marks'))
		family.pushed = family.pushed or rec ~= family.rec -- the score of its lanes
		family.rec = rec
	end
	if gate_is_open(lane) and not was_open then
		descendants_open(lane)
	elseif was_closed and byte(lane.rec, 2) == 49 then
		wake(lane.tail.pool) -- a credit below may have waited for that
	end
	return lane, 'done'
end

-- ---- budgets -----------------------------------------------------------------------

local BUDGET_FIELDS = { 'pace', 'parked_until', 'r.limit', 'i.limit', 'o.limit', 'in_flight' }

local function wake_budget(name, pools)
	for i = 1, #pools, 2 do
		if find(',' .. pools[i + 1] .. ',', ',' .. name .. ',', 1, true) then
			wake(pools[i])
		end
	end
end

-- What one request in flight took of each bucket, at most: its leases were started while
-- nobody knew of limits and carry no estimate.  The lanes of this call are those whose
-- evidence told the limit.
local function start_cost(budget, granted)
	local cost = { 1, 0, 0 }
	for i = 1, #granted do
		local lane, family = granted[i][1], granted[i][1].family
		if family and family.tail.budget == budget then
			cost[2] = max(cost[2], family_number(family, 25, 32) + sub(lane.rec, 50, 57))
			cost[3] = max(cost[3], family_number(family, 33, 40) + 0)
		end
	end
	return cost
end

-- What one budget is going to hold: arguments of an HSET.
local function budget_grant(at, pools, granted)
	local name = key.ns .. 'budget:' .. argv[at]
	local old = call('HMGET', name, unpack(BUDGET_FIELDS))
	local args, limited = { 'HSET', name }, '0'
	for i = 1, 5 do
		local value = (old[i] or 0) + 0
		if argv[at + i] ~= '-' then
			value = number_at(at + i, BUDGET_FIELDS[i])
			if i == 2 and value > 0 then -- a deferral may have said more meanwhile
				value = max(value, (old[2] or 0) + 0)
			end
			args[#args + 1] = BUDGET_FIELDS[i]
			args[#args + 1] = format('%d', value)
		end
		if i > 2 and value > 0 then
			limited = '1'
			if (old[i] or 0) + 0 == 0 and (old[6] or 0) + 0 > 0 then
				local bucket = sub(BUDGET_FIELDS[i], 1, 1)
				local taken = old[6] * start_cost(argv[at], granted)[i - 2]
				args[#args + 1] = bucket .. '.level'
				args[#args + 1] = format('%d', max(0, value - taken))
				args[#args + 1] = bucket .. '.at'
				args[#args + 1] = format('%d', now)
			end
		end
		local eased = i == 1 and (value == 0 or value > (old[1] or 0) + 0) or
			i == 2 and value < (old[2] or 0) + 0
		if eased and value ~= (old[i] or 0) + 0 then
			wake_budget(argv[at], pools)
		end
	end
	local n = #args
	args[n + 1], args[n + 2], args[n + 3], args[n + 4] = 'limited', limited, 'begin', '1'
	args[n + 5], args[n + 6] = 'look', '1'
	args[n + 7], args[n + 8] = 'learned', format('%d', number_at(at + 6, 'learned', 7))
	return args
end

-- grant owner events_cursor N lanes… B budgets…
local function grant()
	local refused = owner_check()
	local n = number_at(4, 'N', 1000)
	local at = 5 + n * LANE_ARGS
	local b = number_at(at, 'B', 1000)
	if at + b * BUDGET_ARGS ~= argc then
		refuse('arguments', 'lanes and budgets do not add up')
	end
	if refused then
		return refused
	end
	level = true
	call('ZCARD', key.tickets)
	call('HLEN', key.look)
	local ids, done, writes = {}, {}, {}
	for i = 1, n do
		ids[i] = argv[5 + (i - 1) * LANE_ARGS]
	end
	records_load(ids, lanes, key.lanes, lane_take)
	for i = 1, n do
		local lane, status = lane_grant(5 + (i - 1) * LANE_ARGS)
		done[i] = { lane, status }
	end
	local pools = b > 0 and call('HGETALL', key.pools) or {}
	for i = 1, b do
		writes[i] = budget_grant(at + 1 + (i - 1) * BUDGET_ARGS, pools, done)
	end
	local answer = { 'OK', now }
	for i = 1, n do
		local lane = done[i][1]
		local family = lane.family
		answer[i + 2] = { lane.id, done[i][2], sub(lane.rec, 4, 13) + 0, lane.use,
			family and family.bits or 0, head_ms(family) }
	end
	book_check()

	book_store()
	for i = 1, b do
		call(unpack(writes[i]))
		call('HSET', key.look, argv[at + 1 + (i - 1) * BUDGET_ARGS], '1')
	end
	if argv[3] ~= '' and argv[3] ~= '-' then
		call('HSET', key.meta, 'events', argv[3])
	end
	deliver()
	return answer
end

register('rule', rule)
register('grant', grant)
register('glance', glance)

end
