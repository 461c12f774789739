-- start.lua - putting jobs of one lane into free slots.
--
-- Jobs of one lane, role and history-free list go as one slice; returned jobs, jobs with
-- an estimate of their own and budgets with buckets are looked at one by one.
--
-- Nothing is written while planning: lists are read ahead by cursors (lists.lua).

-- What a claim is about to do.
--   names qs n       the free slots and their tokens' numbers; the first `at` are filled
--   runs runs_n      what it answers
--   puts puts_n      what it writes: slot, lease
--   homes elements   of each start: where it comes from (false: not plain), what it is
--   run run_lane run_role   the run that further jobs of its kind join
--   session name     the parsed session and its table
--   suspect          nil: not looked yet; false: none; or "slot:q" of the one it holds
--   freed            slots that this call has settled
--   writing_ms       how long the slowest writer that it starts may take; 0: none
-- And what claim.lua does with it: take_slots, make, store, answer; budgets of a session.
local plan = { names = {}, qs = {}, n = 0 }
local start = {} -- what claim.lua uses of this file
local gate_is_open
do

local LEADER_LOOK = 32 -- first ids among which a leader is chosen
local HOLD = 30000 -- hold_max of a ticket whose family is not known (ms)
local BOOST = { 600000, 0, -600000 } -- a band is so much older than its ids say (ms)

-- ---- runs --------------------------------------------------------------------------

function gate_is_open(lane)
	return byte(lane.rec, 2) >= 51
end

-- The scheduler has just moved this budget's pace: it wants to hear of the next start.
local function budget_asks(lane)
	local budget = budgets[lane.tail.budget]
	return budget and budget.ask
end

-- Besides, one start per lane and quarter of its entry's life reports its first event, so
-- that `until` moves while long jobs run.
local function must_begin(lane)
	local life = sub(lane.rec, 58, 67) + 0
	if life > 0 and now >= sub(lane.rec, 83, 96) + 0 then
		lane.rec = put(lane.rec, 83, 96, now + floor(life / 4))
		return true
	end
	return budget_asks(lane)
end

-- Begins a run.  Slots are filled in the order of the answer, so nobody joins one before it.
-- Where a plain job comes from, as its settle needs it.
local function home_of(lane, family, g, is_alone)
	return { lane = lane, g = g + 0, is_alone = is_alone, text = '|' .. family .. '|' .. lane ..
		'|', done = 'done ' .. lane .. ' ' .. family .. ' ' .. g .. ' p ' }
end
start.home_of = home_of

function start.run_open(lane, family, role, begin)
	local rec = lane.rec
	plan.run_lane = nil
	local writes = role == 'l' or role == 't'
	local leader_ms = writes and floor((family and family_hold_max(family) or HOLD) * 6 / 10) or 0
	local marks = family and byte(family.rec, 41) - 48 or 0
	plan.writing_ms = max(plan.writing_ms, leader_ms)
	if begin and budget_asks(lane) then
		budgets[lane.tail.budget].ask = false
	end
	plan.runs_n = plan.runs_n + 1
	local run = { lane.id, family and family.id or '', role, number_text(sub(rec, 4, 13) + 0),
		lane.tail.px, number_text(marks), begin and '1' or '0', number_text(leader_ms),
		number_text(sub(rec, 50, 57) + 0) }
	plan.runs[plan.runs_n] = run
	if role == 'p' then
		run.home = home_of(run[1], run[2], run[4], #family.tail.ancestors == 0)
	end
	return run
end

local function run_for(lane, family, role)
	if plan.run_lane == lane and plan.run_role == role then
		return plan.run
	end
	local begin = role ~= 'p' and (role ~= 'n' or not gate_is_open(lane) or
		budget_asks(lane))
	plan.run, plan.run_lane, plan.run_role = start.run_open(lane, family, role, begin), lane, role
	return plan.run
end

local function say_starts(run, from, to)
	for i = from, to do
		say('start ' .. run[1] .. ' ' .. run[2] .. ' ' .. run[4] .. ' ' ..
			run[3] .. ' ' .. argv[2] .. ' ' .. plan.names[i] .. ' ' .. plan.qs[i])
	end
end

-- Puts items[from..to] into the next free slots, as jobs of `run`.
function start.run_fill(run, items, from, to, charge, delivery, band)
	local head = '|' .. run[2] .. '|' .. run[1] .. '|'
	local tail = '|' .. run[3] .. '|' .. run[4] .. '|' .. charge .. '|' ..
		ends_text(plan.session) .. '|' .. delivery .. '|' .. band
	local n, at, put_at = #run, plan.at, plan.puts_n
	for i = from, to do
		at = at + 1
		n = n + 1
		run[n] = items[i]
		plan.homes[at] = delivery == 1 and run.home
		plan.elements[at] = items[i]
		plan.puts[put_at + 1] = plan.names[at]
		plan.puts[put_at + 2] = number_text(plan.qs[at]) .. head .. items[i] .. tail
		put_at = put_at + 2
	end
	if run[3] ~= 'p' then
		say_starts(run, plan.at + 1, at)
	end
	plan.at, plan.puts_n = at, put_at
end

-- The same, with the first one reporting its `begin` if it is time for that.
local function run_fill_plain(lane, family, items, from, to, charge, delivery, band)
	if must_begin(lane) then
		local run = start.run_open(lane, family, 'p', true)
		start.run_fill(run, items, from, from, charge, delivery, band)
		from = from + 1
	end
	if from <= to then
		start.run_fill(run_for(lane, family, 'p'), items, from, to, charge, delivery, band)
	end
end

-- ---- one by one --------------------------------------------------------------------

-- What a start costs: the family's estimate or the element's own, and the prefix as well
-- if the start may have to write it.
local function charge_of(lane, family, budget, role, element)
	local input, output = match(element, '/(%d+),(%d+)$')
	if not input then
		input, output = sub(family.rec, 25, 32), sub(family.rec, 33, 40)
	end
	input, output = input + 0, output + 0
	if role == 'l' or role == 'c' or role == 'h' then
		input = input + sub(lane.rec, 50, 57)
	end
	return pacing.charge(budget, input, output)
end

-- A job with two recoveries is a suspect, and a session holds one of them at a time, so
-- that a job that kills its worker takes nobody along a third time.
local function suspect_fits()
	if plan.suspect == nil then
		local at = call('HGET', key.ns .. 'session:' .. argv[2], 'suspect')
		local slot, q = match(at or '', '^(%d+):(%d+)$')
		local held = slot and not plan.freed[slot] and call('HGET', plan.name, slot)
		plan.suspect = held and lease_carries(held, q) and at or false
	end
	return not plan.suspect
end

-- Starts queue.items[i].  True; nil if it has to stay where it is; false if the budget
-- allows nothing more.
local function start_one(lane, family, budget, queue, i, band, role)
	local element = queue.items[i]
	local delivery, suspect = 1, false
	if queue.worn then
		local past = past_of(element_id(element))
		delivery, suspect = past.deliveries + 1, past.recoveries >= 2
		if suspect and not suspect_fits() then
			return nil
		end
	end
	local input, output = charge_of(lane, family, budget, role, element)
	if pacing.take(budget, 1, input, output) == 0 then
		return false
	end
	local charge = '0,0'
	if budget.limited then
		charge = format('%d,%d', input, output)
	end
	local slot = plan.at + 1
	if role == 'p' then
		run_fill_plain(lane, family, queue.items, i, i, charge, delivery, band)
	else
		start.run_fill(run_for(lane, family, role), queue.items, i, i, charge, delivery, band)
	end
	if suspect then
		plan.suspect = plan.names[slot] .. ':' .. plan.qs[slot]
	end
	lane.use = lane.use + 1
	if i == queue.at + 1 then
		queue_skip(queue, 1)
	else
		queue_pull(queue, i)
	end
	return true
end

-- Starts up to `want` jobs from the front of one list; answers how many.
function start.from(lane, family, budget, queue, band, role, want)
	local ready = queue_ready(queue, want)
	if ready == 0 then
		return 0
	end
	if role == 'p' and not queue.worn and not budget.limited then
		local n = pacing.take(budget, ready, 0, 0)
		if n > 0 then
			local at = queue.at
			run_fill_plain(lane, family, queue.items, at + 1, at + n, '0,0', 1, band)
			lane.use = lane.use + n
			queue_skip(queue, n)
		end
		return n
	end
	local taken, i = 0, queue.at + 1
	while taken < want and i <= queue.n do
		local at = queue.at
		local started = start_one(lane, family, budget, queue, i, band, role)
		if started then
			taken = taken + 1
		elseif started == false then
			break
		end
		if not started or queue.at > at then
			i = i + 1
		end
	end
	return taken
end

-- ---- order of bands and lists ------------------------------------------------------

-- The list of a band that comes first; `skip`: the returned ones had to stay.
function start.band_queue(family, view, band, skip)
	local bits = view[band]
	if bits % 2 == 1 and not skip then
		return queue_of(family, BACK[band], true)
	end
	return bits >= 2 and queue_of(family, READY[band], false) or nil
end

-- Of several bands the one whose head is oldest after its boost: priority that ages.
function start.best_band(family, view, skip)
	local best, best_ms = 0, nil
	for band = 1, 3 do
		local queue = start.band_queue(family, view, band, skip)
		if queue and queue_ready(queue, 1) > 0 then
			local ms = id_ms(queue.items[queue.at + 1]) - BOOST[band]
			if not best_ms or ms < best_ms then
				best, best_ms = band, ms
			end
		end
	end
	return best
end

-- Starts up to `want` jobs that a gate may hold, in their order, for as long as its best
-- one is not of a lower class.
function start.waiting(lane, family, budget, role, want, class)
	local taken, skip = 0, false
	while taken < want and not budget.stopped do
		local bits = family.bits
		local view = VIEW[bits]
		local band, ask = view.sole, want - taken
		if band == 0 and view.held then
			band, ask = start.best_band(family, view, skip), 1
		end
		if band > 0 and VIEW[family.bits].class > class then
			break
		end
		local queue = band > 0 and start.band_queue(family, view, band, skip)
		if not queue then
			break
		end
		local got = start.from(lane, family, budget, queue, LETTER[band], role, ask)
		taken = taken + got
		if got == 0 and family.bits == bits then -- neither taken nor found to be empty
			if not queue.worn then
				break
			end
			skip = true
		end
	end
	return taken
end

local function is_large(family, element)
	local input = match(element, '/(%d+),')
	return input and input + 0 > max(64, 4 * sub(family.rec, 25, 32))
end

-- Whether a returned job may lead while others wait.  One that came back alone may have been
-- stopped as a leader that said nothing, and would be again: another one leads now.  Of
-- several no single one is to blame.
local function may_lead_again(past, returned)
	return past.attempts == 0 and (past.deliveries == 0 or returned > 1)
end

-- The writer of a cold entry, or the first to look: among the first 32 the first that has
-- not failed yet and is not one of the large ones: their own estimate says so.
function start.leader(lane, family, budget, role, class)
	local view = VIEW[family.bits]
	local band = view.sole > 0 and view.sole or start.best_band(family, view, false)
	if band > 0 and VIEW[family.bits].class > class then
		return false
	end
	for pass = 1, 2 do -- the second takes anybody
		for back = 1, 0, -1 do
			local queue = band > 0 and floor(view[band] / (2 - back)) % 2 == 1 and
				queue_of(family, back == 1 and BACK[band] or READY[band], back == 1)
			local look = queue and queue_ready(queue, LEADER_LOOK) or 0
			for i = 1, look do
				local at = queue.at + i
				local element = queue.items[at]
				local fit = pass == 2 or not is_large(family, element) and
					(back == 0 or may_lead_again(past_of(element_id(element)), look))
				local started
				if fit then
					started = start_one(lane, family, budget, queue, at, LETTER[band], role)
				end
				if started ~= nil then
					if started then
						queue_skip(queue, 0) -- it may have been the last one
					end
					return started
				end
			end
		end
	end
	return false
end

end
