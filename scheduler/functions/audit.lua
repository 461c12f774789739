-- audit.lua - recounts everything that is counted, and says what was wrong.
--
--   leases  ──► in use of lanes, in flight of budgets, taken tickets
--   lists   ──► bits of families
--   records ──► open and held sets
--
-- Each answer triple [what key was is] is an alert, not housekeeping: a counter and what
-- it counts change in one atomic function, so only a bug, a hand or a lost record can part
-- them.  What is allowed to lag is not reported: bits that are set for an empty list, lanes
-- in the open set below a shut ancestor.
--
-- Ended marks are never touched: they go when their id is met.

local leases_count
do

local corrections

local function correct(what, name, was, is)
	corrections[#corrections + 1] = { what, name, tostring(was), tostring(is) }
end

-- Every record, into the book.
local function records_all()
	local got = call('HGETALL', key.families)
	for i = 1, #got, 2 do
		family_take(got[i], got[i + 1])
	end
	got = call('HGETALL', key.lanes)
	for i = 1, #got, 2 do
		lane_take(got[i], got[i + 1])
	end
	for i = 1, lane_n do
		local lane = lane_list[i]
		lane.family = families[lane.tail.family]
	end
end

-- ---- leases ------------------------------------------------------------------------

function leases_count()
	local use, tickets, n = {}, {}, 0
	for _, set in ipairs({ key.workers, key.dying }) do
		local nonces = call('ZRANGE', set, 0, -1)
		for i = 1, #nonces do
			local rows = table_read(key.ns .. 'lease:' .. nonces[i])
			for j = 1, #rows do
				local lease = lease_parse(rows[j][2])
				use[lease.lane] = (use[lease.lane] or 0) + 1
				if lease.role == 't' then
					tickets[lease.lane] = true
				else
					n = n + 1
				end
			end
		end
	end
	return use, tickets, n
end

local function ticket_audit(lane, tickets)
	local state = byte(lane.rec, 68)
	if state == 50 and not tickets[lane.id] then
		local tail = lane.tail
		correct('ticket', lane.id, 'taken', 'failed')
		lane.rec = lane_print(sub(lane.rec, 1, 67) .. '4' .. sub(lane.rec, 69, 96), tail.pool,
			tail.budget, tail.family, tail.px, 'failed,lost')
		lane.tail = lane_tail(lane.rec)
		say('ticket ' .. lane.id .. ' ' .. format('%d', sub(lane.rec, 4, 13)) .. ' failed lost')
		set_del(key.tickets, lane.id)
	elseif (state == 49 or state == 50) and not call('ZSCORE', key.tickets, lane.id) then
		correct('ticket deadline', lane.id, '', sub(lane.rec, 69, 82))
		set_add(key.tickets, sub(lane.rec, 69, 82) + 0, lane.id)
	end
end

local function counts_audit(use, tickets)
	local flight = {}
	for i = 1, lane_n do
		local lane = lane_list[i]
		local counted = use[lane.id] or 0
		if lane.use ~= counted then
			correct('in use', lane.id, lane.use, counted)
			lane.use = counted
		end
		local name = lane.tail.budget
		flight[name] = (flight[name] or 0) + counted
		if name ~= '' and flight[name] == counted then
			budget_of(name)
		end
		ticket_audit(lane, tickets)
	end
	for i = 1, budget_n do
		local budget = budget_list[i]
		local counted = flight[budget.name] or 0
		if budget.flight ~= counted then
			correct('in flight', budget.name, budget.flight, counted)
			budget.flight = counted
		end
	end
end

-- ---- bits --------------------------------------------------------------------------

local function family_audit(family)
	local bits, missing = 0, false
	for i = 1, #LISTS do
		local bit = LISTS[i][2]
		if call('LLEN', key.ns .. LISTS[i][1] .. family.id) > 0 then
			bits = bits + bit
			missing = missing or floor(family.bits / bit) % 2 == 0
		end
	end
	if missing then
		correct('bits', family.id, family.bits, bits)
	end
	family.bits_stale = family.bits
	family.bits = bits
end

-- ---- sets --------------------------------------------------------------------------

-- What each set must hold, and what it may hold: name -> { must = {}, may = {} }.
local function sets_wanted()
	local wanted, names = {}, {}
	local function want(name)
		if not wanted[name] then
			wanted[name] = { must = {}, may = {} }
			names[#names + 1] = name
		end
		return wanted[name]
	end
	for i = 1, lane_n do
		local lane, family = lane_list[i], lane_list[i].family
		local bits = family and family.bits or 0
		local paused = family ~= nil and family_is_paused(family)
		local open, held = want(lane.tail.open), want(lane.tail.held)
		local shut = false
		for j = 1, family and #family.tail.ancestors or 0 do
			local above = lanes[family.tail.ancestors[j]]
			shut = shut or not above or not gate_is_open(above)
		end
		local score = lane_score(lane.rec, lane.use, family, bits, paused)
		open.may[lane.id] = score or lane_score(lane.rec, lane.use_was, family,
			family and family.bits_stale or 0, paused)
		open.must[lane.id] = not shut and score or nil
		held.must[lane.id] = lane_is_held(lane.rec, bits, paused) or nil
		held.may[lane.id] = held.must[lane.id] or shut or
			(family and lane_is_held(lane.rec, family.bits_stale, paused)) or nil
	end
	local pools = call('HGETALL', key.pools)
	for i = 1, #pools, 2 do
		local budgets_of_pool = list_of(pools[i + 1])
		for j = 1, #budgets_of_pool do
			want(key.ns .. 'open:' .. pools[i] .. ':' .. budgets_of_pool[j])
			want(key.ns .. 'held:' .. pools[i] .. ':' .. budgets_of_pool[j])
		end
	end
	return wanted, names
end

-- Reports and removes strangers; whoever belongs in is written by book_check anyway.
local function set_audit(name, wanted)
	local size = quiet('ZCARD', name)
	if type(size) == 'table' then
		call('DEL', name) -- derived from records: of a wrong type it is worth nothing
		correct('type', name, 'not a sorted set', '')
	end
	local rows, seen = call('ZRANGE', name, 0, -1, 'WITHSCORES'), {}
	read_sets[name] = true
	for i = 1, #rows, 2 do
		local id, score = rows[i], rows[i + 1] + 0
		seen[id] = true
		if not wanted.may[id] then
			correct('stranger', name, id, '')
			set_del(name, id)
		elseif type(wanted.must[id]) == 'number' and wanted.must[id] ~= score then
			correct('score', name, score, wanted.must[id])
		end
	end
	for i = 1, lane_n do
		local lane = lane_list[i]
		if wanted.must[lane.id] and not seen[lane.id] then
			correct('missing', name, '', lane.id)
		end
	end
end

-- Whoever has to be looked at must be in `look`; a budget may be in it for too long, until
-- a claim looks.
local function look_audit()
	local names, seen = call('HGETALL', key.look), {}
	local ended = call('HLEN', key.ended) > 0
	for i = 1, #names, 2 do
		local name = names[i]
		seen[name] = true
		if not (name == 'ended' and ended or name ~= 'ended' and budget_of(name).look) then
			correct('look', name, '1', '')
			note('looks_gone', name)
		end
	end
	if ended and not seen.ended then
		correct('look', 'ended', '', '1')
		note('looks_new', 'ended', '1')
	end
	for i = 1, budget_n do
		local budget = budget_list[i]
		if not seen[budget.name] and (budget.look or budget_is_unusual(budget)) then
			correct('look', budget.name, '', '1')
			budget.look = false -- book_store writes it again
		end
	end
end

-- ---- housekeeping ------------------------------------------------------------------

local unused_audit, dead_trim, forget_store
do

local DEAD_MAX = 100000 -- dead letters that are kept
local UNUSED_MAX = 3600000
local forgotten -- keys and fields that go: { command, key, member… }

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
	if above and families[above] then
		families[above].live = families[above].live - 1
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

function unused_audit()
	forgotten = {}
	for i = 1, family_n do
		local family = family_list[i]
		local used = family.bits > 0 or family_number(family, 7, 16) > 0
		for j = 1, #family.tail.lanes do
			local lane = lanes[family.tail.lanes[j]]
			used = used or (lane ~= nil and lane_is_used(lane))
		end
		if is_unused(family.id, used) then
			family_forget(family)
			for j = 1, #family.tail.lanes do
				if lanes[family.tail.lanes[j]] then
					lane_forget(lanes[family.tail.lanes[j]])
				end
			end
		end
	end
	for i = 1, lane_n do -- of nodes that are nobody's leaf
		local lane = lane_list[i]
		if not lane.family and is_unused(lane.id, lane_is_used(lane) or
			families[sub(lane.id, 1, 32)] ~= nil or
			call('SCARD', key.ns .. 'under:' .. lane.id) > 0) then
			lane_forget(lane)
		end
	end
end

-- The oldest dead letters beyond the bound.
function dead_trim()
	local over = call('ZCARD', key.dead) - DEAD_MAX
	local ids = over > 0 and call('ZRANGE', key.dead, 0, min(over, 500) - 1) or {}
	for i = 1, #ids do
		local past = past_of(ids[i])
		finish(ids[i], true, true)
		family_count(past.family, -1)
		set_del(key.dead, ids[i])
	end
	if #ids > 0 then
		count('dead_trimmed', #ids)
	end
end

function forget_store()
	for i = 1, #forgotten do
		call(unpack(forgotten[i]))
	end
end

end

-- audit owner
local function audit()
	local refused = owner_check()
	if refused then
		return refused
	end
	corrections, level = {}, true
	records_all()
	for i = 1, family_n do
		family_audit(family_list[i])
	end
	local use, tickets = leases_count()
	counts_audit(use, tickets)
	local wanted, names = sets_wanted()
	for i = 1, #names do
		set_audit(names[i], wanted[names[i]])
	end
	unused_audit()
	dead_trim()
	look_audit()
	book_check()

	book_store()
	if book.looks_gone then
		call('HDEL', key.look, unpack(book.looks_gone))
	end
	if book.looks_new then
		call('HSET', key.look, unpack(book.looks_new))
	end
	forget_store()
	deliver()
	return { 'OK', now, unpack(corrections, 1, min(#corrections, 1000)) }
end

register('audit', audit)

end
