-- audit.lua - recounts everything that is counted, and says what was wrong.
--
--   1 lanes      leases ──► in use, taken tickets; those that no family has; families whose
--                record is lost and whose jobs wait
--   2 families   lists ──► bits; records ──► open and held sets, budgets of pools; lanes
--                whose record is lost
--   3 sets       members without a record, in `unused`, too
--   4 the rest   leases ──► in use, in flight of budgets; `look`; bounds
--
-- It walks these parts in pieces of a few milliseconds, from the cursor that the last call
-- answered ("part:position"), or all of them in one call without a cursor.  Each piece is
-- right by itself: what it compares it reads in the same call.
--
-- Each answer triple [what key was is] is an alert, not housekeeping: a counter and what
-- it counts change in one atomic function, so only a bug, a hand or a lost record can part
-- them.  What is allowed to lag is not reported: bits that are set for an empty list, lanes
-- in the open set below a shut ancestor.
--
-- An ended mark goes when its id is met.  Claims meet most of them; those at the head of a
-- list from which nobody claims (no worker, a pause, an upstream that is gone) are met here.
-- They would wait there for ever, and be counted as jobs that wait.

local leases_count
do

local PIECE_US = 6000 -- what a piece may take, by the costs below (a modest machine)
local LEASE_US, LANE_US, FAMILY_US = 0.7, 12, 60
local MARKED_US, MARKED_MAX = 200, 1000 -- a family while there are marks; taken by one call
local LEAST_US, MEMBERS, MEMBER_US = 1200, 400, 5

local own = {} -- the functions of this file: locals are scarce
local corrections
local use, tickets -- of leases, once they were walked in this call
local sound -- sets that were found to be sets

local function correct(what, name, was, is)
	corrections[#corrections + 1] = { what, name, tostring(was), tostring(is) }
end

-- ---- leases ------------------------------------------------------------------------

-- Counts the leases of one table.  Ten thousand are looked at in one call: so only at what
-- matters, the third field and the first letter of the fourth ("w": a ticket).
function own.table_count(name, in_use, taken)
	local rows, n = call('HVALS', name), 0
	for i = 1, #rows do
		local text = rows[i]
		local family = find(text, '|', 1, true)
		local lane = find(text, '|', family + 1, true)
		local element = find(text, '|', lane + 1, true)
		if element - lane > 33 then -- else it is `s`, which names no lane
			local id = sub(text, lane + 1, element - 1)
			in_use[id] = (in_use[id] or 0) + 1
			if byte(text, element + 1) == 119 then
				taken[id] = true
			else
				n = n + 1
			end
		end
	end
	return n
end

function leases_count()
	local in_use, taken, n = {}, {}, 0
	for _, set in ipairs({ key.workers, key.dying }) do
		local nonces = call('ZRANGE', set, 0, -1)
		for i = 1, #nonces do
			n = n + own.table_count(key.ns .. 'lease:' .. nonces[i], in_use, taken)
		end
	end
	return in_use, taken, n
end

function own.leases_walk()
	if not use then
		use, tickets = leases_count()
	end
end

-- What a piece may take beside a walk over all leases.
function own.room_us()
	local slots = 0
	for _, set in ipairs({ key.workers, key.dying }) do
		local nonces = call('ZRANGE', set, 0, -1)
		for i = 1, #nonces do
			slots = slots + call('HLEN', key.ns .. 'lease:' .. nonces[i])
		end
	end
	return max(LEAST_US, PIECE_US - slots * LEASE_US)
end

function own.ticket_audit(lane)
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

function own.use_audit(lane)
	local state = byte(lane.rec, 68)
	if lane.use > 0 or state == 50 then
		own.leases_walk()
	end
	local counted = use and use[lane.id] or 0
	if use and lane.use ~= counted then
		correct('in use', lane.id, lane.use, counted)
		lane.use = counted
	end
	own.ticket_audit(lane)
end

-- ---- bits --------------------------------------------------------------------------

function own.bits_of(id)
	local bits = 0
	for i = 1, #LISTS do
		if call('LLEN', key.ns .. LISTS[i][1] .. id) > 0 then
			bits = bits + LISTS[i][2]
		end
	end
	return bits
end

function own.family_audit(family)
	local bits, missing = own.bits_of(family.id), false
	for i = 1, #LISTS do
		local bit = LISTS[i][2]
		missing = missing or floor(bits / bit) % 2 > floor(family.bits / bit) % 2
	end
	if missing then
		correct('bits', family.id, family.bits, bits)
	end
	family.bits_stale = family.bits
	family.bits = bits
end

-- Elements of jobs that have ended go from the heads of its lists.
function own.family_sweep(family)
	for i = 1, #LISTS do
		if own.swept < MARKED_MAX and floor(family.bits / LISTS[i][2]) % 2 == 1 then
			local queue = queue_of(family, LISTS[i], true)
			queue_ready(queue, 0) -- clears the bit of a list of which nothing is left
			own.swept = own.swept + (queue.pulled and #queue.pulled or 0)
		end
	end
end

-- ---- sets --------------------------------------------------------------------------

function own.set_check(name)
	if sound[name] then
		return
	end
	sound[name], read_sets[name] = true, true
	if type(quiet('ZCARD', name)) == 'table' then
		call('DEL', name) -- derived from records: of a wrong type it is worth nothing
		correct('type', name, 'not a sorted set', '')
	end
end

-- must: the score it has to have there, or true for any; may: whether it may be there.
function own.member_audit(name, id, must, may)
	local score = call('ZSCORE', name, id)
	if score and not may then
		correct('stranger', name, id, '')
		set_del(name, id)
	elseif score and type(must) == 'number' and must ~= score + 0 then
		correct('score', name, score, must)
	elseif must and not score then
		correct('missing', name, '', id)
	end
end

-- `gates`: lane -> record, of all ancestors.
function own.sets_audit(lane, gates)
	local family = lane.family
	local bits = family and family.bits or 0
	local stale = family and family.bits_stale or bits
	local paused = family ~= nil and family_is_paused(family)
	local free = family ~= nil and family_is_unheld(family)
	local shut = false
	for i = 1, family and not free and #family.tail.ancestors or 0 do
		local gate = gates[family.tail.ancestors[i]]
		shut = shut or not gate or byte(gate, 2) < 51
	end
	local score = lane_score(lane.rec, lane.use, family, bits, paused)
	local may = score or lane_score(lane.rec, lane.use_was, family, stale, paused)
	own.set_check(lane.tail.open)
	own.set_check(lane.tail.held)
	own.member_audit(lane.tail.open, lane.id, not shut and score, may)
	local held = lane_is_held(lane.rec, bits, paused or free)
	own.member_audit(lane.tail.held, lane.id, held, held or shut or
		(family and lane_is_held(lane.rec, stale, paused or free)))
end

-- Whoever has to be looked at must be in `look`; a budget may be in it for too long, until
-- a claim looks.
function own.look_audit()
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
		if not seen[budget.name] and (budget.look or pacing.is_unusual(budget)) then
			correct('look', budget.name, '', '1')
			budget.look = false -- book_store writes it again
		end
	end
end

-- ---- housekeeping ------------------------------------------------------------------

local DEAD_MAX = 100000 -- dead letters that are kept

-- The oldest dead letters beyond the bound.
function own.dead_trim()
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

-- ---- parts: each answers the position where the next piece begins, "0" at its end ---

-- Records of `ids` from a hash, as a table.
function own.records_of(hash, ids)
	local found, seen, wanted = {}, {}, {}
	for i = 1, #ids do
		if not seen[ids[i]] then
			seen[ids[i]] = true
			wanted[#wanted + 1] = ids[i]
		end
	end
	for from = 1, #wanted, 1000 do
		local to = min(#wanted, from + 999)
		local got = call('HMGET', hash, unpack(wanted, from, to))
		for i = from, to do
			found[wanted[i]] = got[i - from + 1] or nil
		end
	end
	return found
end

-- Whether it is held is what `hold` has said of its route: it is brought about here.  No
-- correction: the record of the route changes first, and the scheduler asks for this.
function own.family_unhold(family, routes)
	local unheld = routes[family.tail.route] or false
	if family_is_unheld(family) == unheld then
		return
	end
	family.rec = put(family.rec, 5, 6, family_number(family, 5, 6) + (unheld and 8 or -8))
	wake(family.tail.pool)
	own.flipped = true
end

function own.routes_read()
	local names, routes = call('HKEYS', key.unheld), {}
	for i = 1, #names do
		routes[names[i]] = true
	end
	return routes
end

-- Claims find the budgets of their pool here: one that is not named starts nothing.
function own.pools_audit(found)
	local seen = {}
	for i = 1, #found do
		local pool, budget = found[i].tail.pool, found[i].tail.budget
		local names = seen[pool] or call('HGET', key.pools, pool) or ''
		if not find(',' .. names .. ',', ',' .. budget .. ',', 1, true) then
			local all = names == '' and budget or names .. ',' .. budget
			correct('pool', pool, names, all)
			call('HSET', key.pools, pool, all)
			names = all
		end
		seen[pool] = names
	end
end

function own.families_part(position, room)
	local routes = own.routes_read()
	local each = marked > 0 and MARKED_US or FAMILY_US
	local got = call('HSCAN', key.families, position, 'COUNT', max(1, floor(room / each)))
	local rows, ids, above, found = got[2], {}, {}, {}
	for i = 1, #rows, 2 do
		local family = families[rows[i]] or family_take(rows[i], rows[i + 1])
		found[#found + 1] = family
		for j = 1, #family.tail.lanes do
			ids[#ids + 1] = family.tail.lanes[j]
		end
		for j = 1, #family.tail.ancestors do
			above[#above + 1] = family.tail.ancestors[j]
		end
	end
	own.pools_audit(found)
	records_load(ids, lanes, key.lanes, lane_take)
	local gates = own.records_of(key.lanes, above)
	for i = 1, #found do
		local family = found[i]
		if not family.bits_stale then -- HSCAN may show one twice
			own.family_audit(family)
			for j = 1, #family.tail.lanes do
				local lane = lanes[family.tail.lanes[j]]
				if not lane.missing then
					lane.family = family
					own.sets_audit(lane, gates)
				elseif family.bits > 0 then -- book_check makes it anew
					correct('record', lane.id, 'lost', 'made anew')
					family.pushed = true
					wake(family.tail.pool)
				end
			end
			if marked > 0 then -- behind the sets, which are as these jobs left them
				own.family_sweep(family)
			end
			forget.family(family)
			own.family_unhold(family, routes)
		end
	end
	if own.swept >= MARKED_MAX and argv[3] then
		return position == '0' and '00' or position -- once more: there may be others
	end
	return got[1]
end

-- The name of the family of a lane, without looking at the rest.
function own.family_name(rec)
	local pool = find(rec, '|', 98, true)
	local budget = find(rec, '|', pool + 1, true)
	return sub(rec, budget + 1, find(rec, '|', budget + 1, true) - 1)
end

-- Jobs wait in lists of a family whose record is lost: the lane knows most of it.
function own.family_audit_lost(lane)
	local family = lane.tail.family ~= '' and family_of(lane.tail.family)
	if not family or not family.missing then
		return
	end
	local bits = own.bits_of(family.id)
	if bits > 0 then
		family_revive(family, lane)
		family.bits, family.pushed = bits, true
		lane.family = family
		correct('record', family.id, 'lost', 'made anew')
		wake(family.tail.pool)
		return family
	end
end

-- `owner`: the record of its family, if there is one; it answers for the lanes it lists.
function own.lane_audit(id, rec, owner)
	local is_listed = owner and find(owner, id, 42, true)
	if is_listed and byte(rec, 68) ~= 49 and sub(rec, 18, 22) == '00000' then
		return -- nothing to count
	end
	local lane = lanes[id] or lane_take(id, rec)
	own.use_audit(lane)
	if is_listed then
		return
	end
	local family = owner and lane_join(lane) or own.family_audit_lost(lane)
	own.sets_audit(lane, family and own.records_of(key.lanes, family.tail.ancestors) or NOTHING)
	if not family then
		forget.lane(lane)
	end
end

function own.lanes_part(position, room)
	local got = call('HSCAN', key.lanes, position, 'COUNT', floor(room / LANE_US))
	local rows, names = got[2], {}
	for i = 1, #rows, 2 do
		check_format(rows[i + 1], 97, 'lanes')
		names[#names + 1] = own.family_name(rows[i + 1])
	end
	local owners = own.records_of(key.families, names)
	for i = 1, #rows, 2 do
		own.lane_audit(rows[i], rows[i + 1], owners[names[(i + 1) / 2]])
	end
	return got[1]
end

-- The budgets of all pools, and the sets they have.
function own.pools_read()
	local names, keys, pools = {}, {}, call('HGETALL', key.pools)
	for i = 1, #pools, 2 do
		local of_pool = list_of(pools[i + 1])
		for j = 1, #of_pool do
			names[#names + 1] = of_pool[j]
			keys[#keys + 1] = key.ns .. 'open:' .. pools[i] .. ':' .. of_pool[j]
			keys[#keys + 1] = key.ns .. 'held:' .. pools[i] .. ':' .. of_pool[j]
		end
	end
	return names, keys
end

-- Looks at a page of members, from the rank `from` on, and removes those of which
-- choose(ids)(i) is true.  Answers where to go on, or false at the end, and how many go.
local function sweep(name, from, choose)
	local ids = call('ZRANGE', name, from, from + MEMBERS - 1)
	local is_gone, gone = choose(ids), 0
	for i = 1, #ids do
		if is_gone(i) then
			set_del(name, ids[i])
			gone = gone + 1
		end
	end
	return #ids == MEMBERS and from + MEMBERS, gone
end

-- Members without a record and those of other pools.
function own.strangers_audit(name, from)
	own.set_check(name)
	return sweep(name, from, function(ids)
		local recs = own.records_of(key.lanes, ids)
		return function(i)
			local tail = recs[ids[i]] and lane_tail(recs[ids[i]])
			if tail and (tail.open == name or tail.held == name) then
				return false
			end
			correct('stranger', name, ids[i], '')
			return true
		end
	end)
end

-- From `unused`: what is not there any more, whoever deleted it, and lanes for which a
-- family answers by now.
function own.unused_audit(name, from)
	own.set_check(name)
	return sweep(name, from, function(ids)
		local recs, names = own.records_of(key.lanes, ids), {}
		for i = 1, #ids do
			names[i] = recs[ids[i]] and own.family_name(recs[ids[i]]) or ids[i]
		end
		local owners = own.records_of(key.families, names)
		return function(i)
			local rec, owner = recs[ids[i]], owners[names[i]]
			return not rec and not owner or rec and owner and find(owner, ids[i], 42, true)
		end
	end)
end

-- The deadlines of jobs that have ended: a settle has no time to look for them.
function own.deadlines_audit(name, from)
	if type(quiet('ZCARD', name)) == 'table' then
		return false, 0 -- of a wrong type: nothing to derive it from
	end
	read_sets[name] = true
	return sweep(name, from, function(ids)
		return function(i)
			return not job.payload_kind(ids[i])
		end
	end)
end

function own.sets_part(position, room)
	local _, names = own.pools_read()
	names[#names + 1] = key.unused
	names[#names + 1] = key.deadline
	local looks = { [key.unused] = own.unused_audit, [key.deadline] = own.deadlines_audit }
	local index, from = match(position, '^(%d+),(%d+)$')
	index, from = (index or 1) + 0, (from or 0) + 0
	local left = 0 -- members of this set that leave it behind this call: ranks move up then
	while index <= #names do
		local rest, gone = (looks[names[index]] or own.strangers_audit)(names[index], from)
		left = rest and left + gone or 0
		index, from = rest and index or index + 1, rest or 0
		room = room - MEMBERS * MEMBER_US
		if room <= 0 and index <= #names then
			return format('%d,%d', index, from - left)
		end
	end
	return '0'
end

-- An inbox that was deleted and began anew behind the cursor (ids of producers' own, a
-- clock that went back) would never be read.  As long as nothing was taken out of it,
-- nothing of it was admitted: all of it is new.
function own.cursor_audit()
	local stored = call('HGET', key.meta, 'cursor')
	local entry = stored and match(stored, '^%d+%-%d+')
	local info = entry and quiet('XINFO', 'STREAM', key.jobs)
	if not info or info.err then
		return
	end
	local inbox = {}
	for i = 1, #info, 2 do
		inbox[info[i]] = info[i + 1]
	end
	if inbox.length > 0 and inbox['max-deleted-entry-id'] == '0-0' and
			id_before(inbox['last-generated-id'], entry) then
		correct('cursor', 'meta', stored, '0-0 0')
		call('HSET', key.meta, 'cursor', '0-0 0')
	end
end

function own.rest_part()
	local names, flight, ids = own.pools_read(), {}, {}
	own.leases_walk()
	for id in pairs(use) do
		ids[#ids + 1] = id
	end
	for id, rec in pairs(own.records_of(key.lanes, ids)) do
		if lanes[id] or sub(rec, 18, 22) + 0 ~= use[id] then
			own.use_audit(lanes[id] or lane_take(id, rec))
		end
		local pool = find(rec, '|', 98, true)
		local budget = sub(rec, pool + 1, find(rec, '|', pool + 1, true) - 1)
		flight[budget] = (flight[budget] or 0) + use[id]
	end
	for i = 1, #names do
		budget_of(names[i])
	end
	for i = 1, budget_n do
		local budget = budget_list[i]
		local counted = flight[budget.name] or 0
		if budget.flight ~= counted then
			correct('in flight', budget.name, budget.flight, counted)
			budget.flight = counted
		end
	end
	own.dead_trim()
	own.look_audit()
	own.cursor_audit()
	return '0'
end

local PARTS = { own.lanes_part, own.families_part, own.sets_part, own.rest_part }

-- audit owner [cursor]
local function audit()
	local refused = owner_check()
	local part, position = 1, '0'
	if argv[3] then
		part, position = match(argv[3], '^([1-4]):([%d,]+)$')
		if not part then
			refuse('cursor', 'expected what the last call answered, got "' ..
				sub(argv[3], 1, 40) .. '"')
		end
		part = part + 0
	end
	if refused then
		return refused
	end
	corrections, use, tickets, sound = {}, nil, nil, {}
	own.flipped, own.swept, marked = false, 0, call('HLEN', key.ended)
	forget.open()
	local room = argv[3] and own.room_us() or 1000000000
	repeat
		position = PARTS[part](position, room)
		part = position == '0' and part + 1 or part
	until argv[3] or part > #PARTS
	level = #corrections > 0 or own.flipped -- what was wrong is written as it should be
	book_check()

	book_store()
	if book.looks_gone then
		call('HDEL', key.look, unpack(book.looks_gone))
	end
	if book.looks_new then
		call('HSET', key.look, unpack(book.looks_new))
	end
	forget.store()
	deliver()
	local going_on = part <= #PARTS and part .. ':' .. position or ''
	return { 'OK', now, going_on, unpack(corrections, 1, min(#corrections, 1000)) }
end

register('audit', audit)

end
