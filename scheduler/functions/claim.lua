-- claim.lua - from the open sets into free slots.
--
--   1. lanes just settled, if not worse in class than the best open lane
--   2. the open sets of the session's budgets, best score first
--   3. if slots are left: lanes whose hold_max has passed
--
-- A lane starts a wanted ticket; jobs of its family's `now` list; one job per credit (the
-- scheduler chose it: ancestors may be shut, but not have expired since); any job if its
-- gate is open, `now` before `until`, and every gated ancestor likewise.  All within
-- window and budget.
-- A member that is found not to be open is taken out of the set (book.lua compares).

do

local TRIES_MAX = 64 -- members looked at in one call
local POLL = 1000 -- ms until somebody who found nothing asks again
local TICKET_GRACE = 5000 -- ms: a writer stops itself so long before its ticket is taken away
local IDLE_GAP = 3000 -- so long without a claim that left slots free: all were busy

local hold_off -- nil until somebody needs to know
local heads -- per budget: where its open set has been read to
local again -- lanes with a turn to come: { lane, score, budget, lane if not served yet }

local function holding_is_off()
	if hold_off == nil then
		hold_off = call('HGET', key.meta, 'hold') == 'off'
	end
	return hold_off
end

-- ---- may this lane start -----------------------------------------------------------

-- True if it starts everything only because holding was off, and it is on again.
local function was_off(lane)
	return byte(lane.rec, 3) == 55 and not holding_is_off()
end

-- True if the cache has no objection.  Past its `until` a lane is closed here, by whoever
-- sees it first; so is one that the scheduler has not granted anew since holding was off.
local function lane_is_open(lane)
	if byte(lane.rec, 2) < 51 then
		return false
	end
	if now < sub(lane.rec, 36, 49) + 0 and not was_off(lane) then
		return true
	end
	lane.rec = '100' .. sub(lane.rec, 4)
	say('expired ' .. lane.id .. ' ' .. format('%d', sub(lane.rec, 4, 13)))
	return false
end

local function may_start(lane, family)
	if family_is_unheld(family) then
		local _ = gate_is_open(lane) and lane_is_open(lane) -- for others, whom it may hold
		return true
	end
	if not gate_is_open(lane) then
		return false
	end
	local ancestors = family.tail.ancestors
	if was_off(lane) or (now >= sub(lane.rec, 36, 49) + 0 and not holding_is_off()) then
		return lane_is_open(lane)
	end
	for i = 1, #ancestors do
		local above = lane_of(ancestors[i])
		if not lane_is_open(above) and not holding_is_off() then
			lane.blocked = true
			return false
		end
	end
	return true
end

-- A credit or a ticket counts on the lanes that were shut when it was given.  One above
-- that has expired since then has no writer yet: the scheduler chooses it.
local function above_has_expired(family)
	local ancestors = family and family.tail.ancestors or {}
	for i = 1, #ancestors do
		local above = lane_of(ancestors[i])
		local gate = byte(above.rec, 2)
		if (gate == 51 and not lane_is_open(above)) or
			(gate == 48 and now >= sub(above.rec, 36, 49) + 0) then
			return true
		end
	end
	return false
end

-- From here on the deadline is its taker's: by then a live one has stopped its request
-- itself (leader_ms), so that the next writer never meets it.
local function start_ticket(lane, family, budget)
	local input = pacing.charge(budget, sub(lane.rec, 50, 57) + 0, 0)
	if pacing.take(budget, 1, input, 0) == 0 then
		return
	end
	local g = sub(lane.rec, 4, 13) + 0
	local charge = budget.limited and format('%d', input) .. ',0' or '0,0'
	local taker = argv[2] .. ',' .. plan.names[plan.at + 1] .. ',' .. plan.qs[plan.at + 1]
	local tail = lane.tail
	local run = start.run_open(lane, family, 't', true)
	start.run_fill(run, { 'w:' .. lane.id .. ':' .. format('%d', g) },
		1, 1, charge, 1, 'n')
	local deadline = now + run[8] + TICKET_GRACE
	lane.rec = lane_print(sub(lane.rec, 1, 67) .. '2' .. format('%014d', deadline) ..
		sub(lane.rec, 83, 96), tail.pool, tail.budget, tail.family, tail.px, taker)
	lane.tail = lane_tail(lane.rec)
	lane.use = lane.use + 1
	set_add(key.tickets, deadline, lane.id)
end

local function still_waits(family, class)
	return family.bits % 64 > 0 and VIEW[family.bits].class == class
end

-- The jobs of its best band are started, or had ended: the others wait for their turn,
-- behind the families that come before them.
local function take_turn(lane, family, budget, class)
	local left = VIEW[family.bits].class
	local score = left and left > class and
		lane_score(lane.rec, lane.use, family, family.bits, false)
	if score then
		again[#again + 1] = { lane, score, budget }
	end
end

-- Starts what this lane may start, down to the class with which it was found.
local function serve(lane, budget)
	local family = lane_join(lane)
	lane.served = true
	if byte(lane.rec, 68) == 49 and lane.use < sub(lane.rec, 23, 27) + 0 and
		not above_has_expired(family) then
		start_ticket(lane, family, budget)
	end
	if not family or family.bits == 0 or family_is_paused(family) then
		return
	end
	local class = VIEW[family.bits].class
	local want = min(plan.n - plan.at, sub(lane.rec, 23, 27) - lane.use)
	if want > 0 and family.bits >= 64 then
		want = want - start.from(lane, family, budget, queue_of(family, NOW, true), 'n', 'n',
			want)
	end
	local credits = sub(lane.rec, 14, 16) + 0
	if credits > 0 and above_has_expired(family) then
		credits = 0
	end
	local role = byte(lane.rec, 17) == 50 and 'c' or 'l'
	while want > 0 and credits > 0 and still_waits(family, class) do
		if not start.leader(lane, family, budget, role, class) then
			break
		end
		want, credits = want - 1, credits - 1
		lane.rec = put(lane.rec, 14, 16, credits)
	end
	if want > 0 and still_waits(family, class) and may_start(lane, family) then
		start.waiting(lane, family, budget, 'p', want, class)
	end
	take_turn(lane, family, budget, class)
end

-- ---- the walk ----------------------------------------------------------------------

-- Those of one upstream only, if it is named; else of all but those that the worker cannot
-- reach at present.
function plan.budgets(session, only)
	local all = list_of(session.names ~= '*' and session.names or
		call('HGET', key.pools, session.pool) or '')
	if session.shunned == '' and not only then
		return all
	end
	local names, shunned = {}, ',' .. session.shunned .. ','
	for i = 1, #all do
		local upstream = match(all[i], '^[^@:]*')
		local is_wanted = not find(shunned, ',' .. upstream .. ',', 1, true)
		if only then
			is_wanted = upstream == only
		end
		if is_wanted then
			names[#names + 1] = all[i]
		end
	end
	return names
end

-- One cursor per budget that may start something; each has read the best of its set.
local function heads_open(session, only)
	local names = plan.budgets(session, only)
	heads, again = {}, {}
	for i = 1, #names do
		local budget = budget_of(names[i])
		local wait = 0
		if budget.limited or now < budget.parked or
			(budget.pace > 0 and budget.flight >= budget.pace) then
			wait = pacing.wait(budget, 0, 0)
		end
		if wait > 0 then
			pacing.stop(budget, wait)
		else
			local open = key.ns .. 'open:' .. session.pool .. ':' .. names[i]
			read_sets[open] = true
			heads[#heads + 1] = { open = open, budget = budget, at = 1, read = 1,
				rows = call('ZRANGE', open, '0', '0', 'WITHSCORES') }
		end
	end
end

-- The first of the lanes that take another turn, if it comes before this score.
local function again_next(score)
	local best
	for i = 1, #again do
		local row = again[i]
		if not row[3].stopped and not (row[4] and row[4].served) and
			(not score or row[2] < score) then
			best, score = i, row[2]
		end
	end
	return best and table.remove(again, best)
end

-- The best member not looked at yet over all budgets: lane, score, budget.  A lane that
-- takes another turn before it comes with a fourth word.
local function heads_next()
	local best, best_score
	for i = 1, #heads do
		local head = heads[i]
		if not head.rows[head.at] and head.read > 0 then
			head.rows = call('ZRANGE', head.open, head.read, head.read + 15, 'WITHSCORES')
			head.at = 1
			head.read = #head.rows > 0 and head.read + 16 or 0
		end
		local score = head.rows[head.at + 1]
		if score and not head.budget.stopped and (not best or score + 0 < best_score) then
			best, best_score = head, score + 0
		end
	end
	local row = again_next(best_score)
	if row then
		return row[1].id, row[2], row[3], true
	end
	if best then
		best.at = best.at + 2
		return best.rows[best.at - 2], best_score, best.budget
	end
end

-- The class of the best open lane, 9 if there is none.
local function heads_class()
	local class = 9
	for i = 1, #heads do
		local score = heads[i].rows[2]
		if score then
			class = min(class, floor(score / 1000000000))
		end
	end
	return class
end

local function serve_settled(settled, settled_n)
	local class = heads_class()
	for i = 1, settled_n do
		local lane = settled[i]
		local family = lane_join(lane)
		if plan.at < plan.n and family and not lane.missing then
			local score = lane_score(lane.rec, lane.use, family, family.bits,
				family_is_paused(family))
			local budget = score and budget_of(lane.tail.budget)
			for j = 1, budget and #heads or 0 do -- only budgets this session works for
				local is_ours = heads[j].budget == budget and not budget.stopped and
					lane.tail.pool == plan.session.pool
				if is_ours and floor(score / 1000000000) <= class then
					serve(lane, budget)
				elseif is_ours then -- it may have been full, and in no open set
					again[#again + 1] = { lane, score, budget, lane }
				end
			end
		end
	end
end

-- Answers whether members were left that nobody has looked at.
local function walk()
	for _ = 1, TRIES_MAX do
		if plan.at == plan.n then
			return false
		end
		local id, score, budget, is_again = heads_next()
		if not id then
			return false
		end
		local lane = lane_of(id)
		if is_again then
			serve(lane, budget)
		elseif lane.missing then
			set_del(key.ns .. 'open:' .. plan.session.pool .. ':' .. budget.name, id)
		elseif not lane.served then
			lane.score = score
			serve(lane, budget)
		end
	end
	return true
end

-- ---- lanes whose hold_max has passed -----------------------------------------------

-- Since when this pool has had free slots; the hold clocks run only while it has.  Nil if
-- it had none.
local function idle_read()
	local text = call('HGET', key.idle, plan.session.pool)
	local since, last = match(text or '', '^(%d+) (%d+)$')
	return since and now - last <= IDLE_GAP and since + 0 or nil
end

local function idle_text(since, last)
	return format('%d', since) .. ' ' .. format('%d', last)
end

-- A writer that takes the last free slot is the gate's doing: the clocks run on until it
-- must be done.  Else writers that never come to an end would stop them for ever.
local function idle_while_writing()
	local since = plan.writing_ms > 0 and idle_read()
	return since and idle_text(since, now + plan.writing_ms) or nil
end

-- Starts one job of a due lane (all, if holding is off).  Answers when to look again.  A
-- lane from which nothing can start for want of a window, or but suspects, makes room for
-- those behind it.
local function serve_due(lane, family, due, since)
	local budget = budgets[lane.tail.budget]
	if not budget or budget.stopped then
		return nil
	end
	local hold = family_hold_max(family)
	local ready = max(due, since + hold, budget.blocked + hold)
	if ready > now and not holding_is_off() then
		if ready > due then
			lane.due = ready
		end
		return ready
	end
	local room = min(plan.n - plan.at, sub(lane.rec, 23, 27) - lane.use)
	local want = holding_is_off() and room or min(room, 1)
	if start.waiting(lane, family, budget, 'h', want, 3) == 0 then
		lane.due = not budget.stopped and now + POLL or nil
		return lane.due
	end
	if family.bits % 64 == 0 then
		return nil
	end
	local view = VIEW[family.bits]
	local band = view.sole > 0 and view.sole or start.best_band(family, view, false)
	local queue = band > 0 and start.band_queue(family, view, band, false)
	if queue and queue_ready(queue, 1) > 0 then
		due = max(now, id_ms(queue.items[queue.at + 1]) + hold)
		lane.due = due
	end
	return due
end

-- The lanes whose clocks end first, of budgets that may start something: nobody waits
-- behind lanes that a budget keeps from starting.
local function held_rows()
	local found = {}
	for i = 1, #heads do
		local head = heads[i]
		if not head.budget.stopped then
			local held = key.ns .. 'held:' .. plan.session.pool .. ':' .. head.budget.name
			local rows = call('ZRANGE', held, '0', '31', 'WITHSCORES')
			read_sets[held] = true
			for j = 1, #rows, 2 do
				found[#found + 1] = { rows[j], rows[j + 1] + 0, held }
			end
		end
	end
	if #heads > 1 then
		sort(found, function(a, b)
			return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1])
		end)
	end
	return found
end

local function serve_held(since)
	local rows = held_rows()
	local soon = now + POLL
	for i = 1, #rows do
		local id, due = rows[i][1], rows[i][2]
		if plan.at == plan.n then
			return now
		end
		if due > now and not holding_is_off() then
			return min(soon, due)
		end
		local lane = lane_of(id)
		local family = lane_join(lane)
		if lane.missing or not family or family.bits % 64 == 0 or family_is_paused(family) then
			set_del(rows[i][3], id)
		elseif may_start(lane, family) and not holding_is_off() then
			lane.unblocked = true -- it belongs into the open set, not here
		else
			soon = min(soon, serve_due(lane, family, due, since) or soon)
		end
	end
	return soon
end

-- ---- claim -------------------------------------------------------------------------

-- Plans starts for the free slots; settled: lanes that have just been settled; only: an
-- upstream, nil for all.  Answers how long the worker may sleep, and the idle record to
-- write if slots were left.
function plan.make(session, name, settled, settled_n, only)
	plan.session, plan.name, plan.suspect, hold_off = session, name, nil, nil
	plan.runs, plan.runs_n, plan.puts, plan.puts_n, plan.at = {}, 0, {}, 0, 0
	plan.homes, plan.elements = {}, {}
	plan.run_lane, plan.writing_ms = nil, 0
	if plan.n == 0 or session.manner ~= '' then -- it is to take nothing more
		return POLL
	end
	heads_open(session, only)
	if settled_n > 0 then
		serve_settled(settled, settled_n)
	end
	local more = plan.at < plan.n and walk()
	if plan.at == plan.n then
		return 0, idle_while_writing()
	end
	local since = idle_read() or now
	local soon = serve_held(since)
	local idle = idle_text(since, now)
	if plan.at < plan.n then
		say('short ' .. session.pool .. ' ' .. plan.n - plan.at)
	end
	more = more or lists.are_cut_short()
	if more or plan.at == plan.n then
		return 0, idle
	end
	if #heads == 0 and budget_n > 0 then -- all parked, paced or empty
		soon = nil
		for i = 1, budget_n do
			local wait = budget_list[i].stopped
			soon = wait and now + min(wait, soon and soon - now or wait) or soon
		end
	end
	return max(0, (soon or now + POLL) - now), idle
end

function plan.store(idle)
	if plan.puts_n == 2 then
		call('HSET', plan.name, plan.puts[1], plan.puts[2])
	else
		for from = 1, plan.puts_n, 1000 do
			call('HSET', plan.name, unpack(plan.puts, from, min(plan.puts_n, from + 999)))
		end
	end
	for i = 1, plan.at do
		local slot, home = plan.names[i], plan.homes[i]
		if home then
			recall.note(plan.name, plan.session, slot, number_text(plan.qs[i]),
				plan.elements[i], home)
		else
			recall.drop(plan.name, slot)
		end
	end
	if idle then
		call('HSET', key.idle, plan.session.pool, idle)
	end
	if plan.suspect then
		call('HSET', key.ns .. 'session:' .. argv[2], 'suspect', plan.suspect)
	end
end

-- Words of a line: an empty one is a dash, and a lease of another format may not end it.
local function line_of(words, n)
	for i = 1, n do
		local word = words[i]
		words[i] = word == '' and '-' or find(word, '%s') and gsub(word, '%s', '?') or word
	end
	return concat(words, ' ', 1, n)
end

-- One text of lines: a table that Redis has to turn into a reply costs more than most
-- commands.
function plan.answer(sleep_ms, refused, troubles)
	local lines = { 'OK ' .. now_text() .. ' ' .. number_text(sleep_ms),
		line_of(refused, #refused), line_of(troubles, #troubles) }
	for i = 1, plan.runs_n do
		local run = plan.runs[i]
		line_of(run, 9) -- family and px may be empty
		lines[i + 3] = concat(run, ' ')
	end
	return concat(lines, '\n')
end

-- Slots from argv[first] on: the free ones are planned for, the others are answered.
-- held(i) is what the slot of argv[i] holds.
function plan.take_slots(first, q, held)
	local refused, seen = {}, {}
	plan.n = 0
	for i = first, argc do
		local slot, lease = slot_at(i), held(i)
		if seen[slot] then
			refuse('slot', slot .. ' is named twice')
		end
		seen[slot] = true
		if lease then
			refused[#refused + 1] = slot
			refused[#refused + 1] = lease
		else
			plan.n = plan.n + 1
			plan.names[plan.n] = slot
			plan.qs[plan.n] = q + (i - first)
		end
	end
	return refused
end

-- claim nonce c q [=upstream] slot…
local function claim()
	local name, q = lease_key(), number_at(4, 'q')
	local only = match(argv[5] or '', '^=(.*)$')
	local first = only and 6 or 5
	local session, got = session_read(name, { unpack(argv, first, argc) }, argc - first + 1)
	if not session then
		return got
	end
	marked = call('HLEN', key.ended)
	plan.freed = {}
	local refused = plan.take_slots(first, q, function(i)
		return got[i - first + 2]
	end)
	local sleep_ms, idle = plan.make(session, name, nil, 0, only)
	book_check()

	book_store()
	plan.store(idle)
	deliver()
	return plan.answer(sleep_ms, refused, {})
end

register('claim', claim)

end
