-- budget.lua - what a provider allows: pace, parking, and debt in token buckets.
--
-- A start needs: not parked, in flight < pace (0: no bound), and in each bucket a level of
-- at least min(estimate, size).  It subtracts its estimate, which counts as twice the size
-- at most; a correction can push a level below zero, too.  Neither does by more than a
-- minute's limit, whatever a job asks for and a provider says it has used.  A bucket
-- refills continuously and holds one minute's limit.  Without limits, the usual case
-- of a pool on one's own machines, the buckets are not read.
--
-- `ask`: the scheduler wants to hear the first event of the next start, whatever its role.
--
-- Refunds: release of what was never sent gives all back; 429 and what the provider has
-- refused for good give the tokens, not the request; settle gives estimate - actual.
-- Nothing else does: a bucket heals itself within a minute, unlike a slot.

local budgets, budget_list, budget_n
local budget_of
local pacing = {} -- what may start: wait, stop, take, move, is_unusual, check, store
do

local BUCKETS = { 'r', 'i', 'o' }
local LEVELS = { 'r.limit', 'r.level', 'r.at', 'i.limit', 'i.level', 'i.at', 'o.limit',
	'o.level', 'o.at' }

function budget_of(name)
	local budget = budgets[name]
	if budget then
		return budget
	end
	local own = key.ns .. 'budget:' .. name
	local got = call('HMGET', own, 'in_flight', 'pace', 'parked_until', 'blocked_at', 'limited',
		'begin', 'look')
	budget = { name = name, key = own, flight = (got[1] or 0) + 0, pace = (got[2] or 0) + 0,
		parked = (got[3] or 0) + 0, blocked = (got[4] or 0) + 0, limited = got[5] == '1',
		ask = got[6] == '1', look = got[7] == '1' }
	budget.flight_was, budget.parked_was = budget.flight, budget.parked
	budget.blocked_was, budget.ask_was = budget.blocked, budget.ask
	budgets[name] = budget
	budget_n = budget_n + 1
	budget_list[budget_n] = budget
	return budget
end

-- Reads the buckets and brings them to now.
local function budget_levels(budget)
	if budget.level or not budget.limited then
		return budget.level
	end
	local got = call('HMGET', budget.key, unpack(LEVELS))
	budget.level, budget.limit = {}, {}
	for i = 1, 3 do
		local limit = (got[i * 3 - 2] or 0) + 0
		if limit > 0 then
			local fill, at = got[i * 3 - 1], (got[i * 3] or now) + 0
			fill = fill and fill + max(0, now - at) * limit / 60000 or limit
			budget.limit[i], budget.level[i] = limit, min(fill, limit)
		end
	end
	return budget.level
end

function pacing.move(budget, requests, input, output)
	local fill = budget_levels(budget)
	if fill then
		local add = { requests, input, output }
		for i = 1, 3 do
			fill[i] = fill[i] and min(fill[i] + add[i], budget.limit[i])
		end
		budget.moved = true
	end
end

-- What a job came to, less than its estimate or more.
function usage.into_budget(budget, input, output)
	local fill = budget_levels(budget)
	local floors = {}
	for i = 2, fill and 3 or 0 do
		floors[i] = fill[i] and min(fill[i], -budget.limit[i])
	end
	pacing.move(budget, 0, input, output)
	for i = 2, fill and 3 or 0 do
		fill[i] = fill[i] and max(fill[i], floors[i])
	end
end

-- What is charged for an estimate.
function pacing.charge(budget, input, output)
	local limit = budget_levels(budget) and budget.limit
	if limit then
		input = limit[2] and min(input, 2 * limit[2]) or input
		output = limit[3] and min(output, 2 * limit[3]) or output
	end
	return input, output
end

-- How long until a start is possible, 0 if it is; a pace that is reached ends when
-- somebody settles, at a time nobody knows.
function pacing.wait(budget, input, output)
	if now < budget.parked then
		return budget.parked - now
	end
	if budget.pace > 0 and budget.flight >= budget.pace then
		return 1000
	end
	local fill = budget_levels(budget)
	local wait = 0
	if fill then
		local limit = budget.limit
		for i = 1, 3 do
			local need = i == 1 and 1 or i == 2 and input or output
			local missing = fill[i] and min(need, limit[i]) - fill[i] or 0
			if missing > 0 then
				wait = max(wait, floor(missing * 60000 / limit[i]) + 1)
			end
		end
	end
	return wait
end

-- A claim wanted to start something and could not: hold clocks do not run meanwhile.
function pacing.stop(budget, wait)
	budget.stopped = wait
	if now - budget.blocked >= 100 then
		budget.blocked = now
	end
end

-- How many starts of this estimate fit, at most `want`; they are taken.
function pacing.take(budget, want, input, output)
	if budget.stopped then
		return 0
	end
	if now >= budget.parked and not budget.limited then
		local room = budget.pace > 0 and budget.pace - budget.flight or want
		local taken = max(0, min(want, room))
		budget.flight = budget.flight + taken
		if taken < want then
			pacing.stop(budget, 1000)
		end
		return taken
	end
	for taken = 0, want - 1 do
		local wait = pacing.wait(budget, input, output)
		if wait > 0 then
			pacing.stop(budget, wait)
			return taken
		end
		budget.flight = budget.flight + 1
		pacing.move(budget, -1, -input, -output)
	end
	return want
end

-- True if a claim has to look at this budget and may not just start.
function pacing.is_unusual(budget)
	return budget.limited or budget.ask or now < budget.parked or
		(budget.pace > 0 and budget.flight > budget.pace)
end

-- `look` exists while there is something to look at: budgets by name, ended jobs by
-- `ended`.  A settle that finds it absent may take the swift way.
local function look_store(budget)
	if budget.look_new == budget.look then
		return
	end
	if budget.look_new then
		call('HSET', key.look, budget.name, '1')
		call('HSET', budget.key, 'look', '1')
	else
		call('HDEL', key.look, budget.name)
		call('HDEL', budget.key, 'look')
	end
end

function pacing.check()
	local changed = false
	for i = 1, budget_n do
		local budget = budget_list[i]
		budget.look_new = pacing.is_unusual(budget)
		changed = changed or budget.look_new ~= budget.look
	end
	if changed then
		call('HLEN', key.look)
	end
end

function pacing.store(budget)
	local args, n = { 'HSET', budget.key }, 2
	if budget.flight < 0 then
		budget.flight = 0
		count('lane_drift')
	end
	local function field(name, value)
		args[n + 1], args[n + 2] = name, value
		n = n + 2
	end
	if budget.flight ~= budget.flight_was then
		field('in_flight', budget.flight)
	end
	if budget.parked ~= budget.parked_was then
		field('parked_until', format('%d', budget.parked))
	end
	if budget.blocked ~= budget.blocked_was then
		field('blocked_at', format('%d', budget.blocked))
	end
	if budget.ask ~= budget.ask_was then
		field('begin', '0')
	end
	if budget.moved then
		for i = 1, 3 do
			if budget.level[i] then
				field(BUCKETS[i] .. '.level', format('%.3f', budget.level[i]))
				field(BUCKETS[i] .. '.at', format('%d', now))
			end
		end
	end
	if n > 2 then
		call(unpack(args, 1, n))
	end
	look_store(budget)
end

end
