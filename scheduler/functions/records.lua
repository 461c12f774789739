-- records.lua - families, lanes and leases as Redis keeps them, read by position.
--
-- A record is a string of fixed columns of digits, then fields behind bars (the tables in
-- docs/PROTOCOL.md).  A Lua number has 53 bits, too few for a lane, and building a table
-- per record costs more than the commands do: so a record stays a string, the one number
-- that every call needs is cut out when it is opened, and the fields behind the columns,
-- which hardly ever change, are remembered by their text (lane_tail, family_tail).
--
-- A number never runs into its neighbour's column: `put` clamps and the call says `drift`.

local WIDTH = {} -- format and largest value of a column by its width
for width = 1, 14 do
	WIDTH[width] = { '%0' .. width .. 'd', 10 ^ width - 1 }
end

-- What the bits of non-empty lists mean.  class: 1 high and now, 2 normal, 3 low.  sole:
-- the only band with work, 0 if there are several.  held: work that a gate may hold.
-- simple: only fresh jobs of one band.
local VIEW = {}
for bits = 0, 127 do
	local high, normal, low = bits % 4, floor(bits / 4) % 4, floor(bits / 16) % 4
	local view = { now = bits >= 64, held = bits % 64 > 0, [1] = high, [2] = normal,
		[3] = low, digits = format('%03d', bits), sole = 0,
		simple = bits == 2 or bits == 8 or bits == 32 }
	if high > 0 or view.now then
		view.class = 1
	elseif normal > 0 then
		view.class = 2
	elseif low > 0 then
		view.class = 3
	end
	for band = 1, 3 do
		if view[band] > 0 and view[band] * 4 ^ (band - 1) == bits % 64 then
			view.sole = band
		end
	end
	VIEW[bits] = view
end

local BAND = { h = 1, n = 2, l = 3 }
local LETTER = { 'h', 'n', 'l' }
-- Lists of a family: name in its key and bit.  The first of a band is popped first.
local BACK = { { 'back:h:', 1 }, { 'back:n:', 4 }, { 'back:l:', 16 } }
local READY = { { 'ready:h:', 2 }, { 'ready:n:', 8 }, { 'ready:l:', 32 } }
local NOW = { 'now:', 64 }

local drifted -- true once a number had to be clamped in this call

local function put(rec, first, last, n)
	local width = WIDTH[last - first + 1]
	if n < 0 then
		n, drifted = 0, true
	elseif n > width[2] then
		n, drifted = width[2], true
	end
	return sub(rec, 1, first - 1) .. format(width[1], n) .. sub(rec, last + 1)
end

local function check_format(rec, size, what)
	if byte(rec, 1) ~= 49 or byte(rec, size) ~= 124 then
		refuse(what, 'a record of another format: "' .. sub(rec, 1, 20) .. '…"')
	end
end

-- ---- lanes: columns 1 to 96, fields pool budget family px ticket -------------------

local LANE_BLANK = '100' .. '0000000000' .. '000' .. '0' .. '00000' .. '99999' ..
	'00000000' .. '99999999999999' .. '00000000' .. '0000000000' .. '0' ..
	'00000000000000' .. '00000000000000'

local function lane_tail(rec)
	local text = sub(rec, 97)
	local tail = memo.lane[text]
	if not tail then
		local pool, budget, family, px, ticket =
			match(text, '^|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$')
		if not pool then
			refuse('lanes', 'a record without its fields: "' .. sub(text, 1, 80) .. '"')
		end
		tail = { pool = pool, budget = budget, family = family, px = px, ticket = ticket,
			open = key.ns .. 'open:' .. pool .. ':' .. budget,
			held = key.ns .. 'held:' .. pool .. ':' .. budget }
		memo_grow()
		memo.lane[text] = tail
	end
	return tail
end

local function lane_print(columns, pool, budget, family, px, ticket)
	return columns .. '|' .. pool .. '|' .. budget .. '|' .. family .. '|' .. px .. '|' ..
		ticket
end

-- A bypass because one job only has this prefix.
local function lane_is_unshared(rec)
	return sub(rec, 2, 3) == '43'
end

-- ---- families: columns 1 to 41, fields pool budget lanes ancestors px route [model] -

local function family_tail(rec)
	local text = sub(rec, 42)
	local tail = memo.family[text]
	if not tail then
		local pool, budget, lanes, ancestors, px, route =
			match(text, '^|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)')
		if not pool then
			refuse('families', 'a record without its fields: "' .. sub(text, 1, 80) .. '"')
		end
		tail = { pool = pool, budget = budget, lanes = list_of(lanes),
			ancestors = list_of(ancestors), px = px, route = route }
		memo_grow()
		memo.family[text] = tail
	end
	return tail
end

local function family_print(bits, flags, live, hold_max, input, output, marks, fields)
	return '1' .. format('%03d%02d%010d%08d%08d%08d%01d', bits, flags, live, hold_max,
		input, output, marks) .. fields
end

-- ---- leases: q|family|lane|element|role|g|in,out|end|delivery|band ------------------

local function lease_parse(text)
	local q, family, lane, element, role, g, input, output, ends, delivery, band = match(text,
		'^(%d+)|([^|]*)|([^|]*)|([^|]*)|(%a)|(%d+)|(%d+),(%d+)|(%d+)|(%d+)|(%a)$')
	if not q then
		refuse('lease', 'a record of another format: "' .. sub(text, 1, 80) .. '"')
	end
	local begun = byte(role) < 97 -- a capital: its first event was told
	return { q = q, family = family, lane = lane, element = element, g = g + 0,
		role = begun and string.lower(role) or role, begun = begun,
		input = input + 0, output = output + 0, ends = ends + 0, delivery = delivery + 0,
		band = band, text = text, id = element_id(element),
		slim = element_is_slim(element) }
end

-- True iff `text` is the lease that carries the token number q.
local function lease_carries(text, q)
	return text and sub(text, 1, #q + 1) == q .. '|'
end

-- ---- usage: sent first read written uncached output [limits] -----------------------

local usage = {} -- parse, words, spend; touch and correct are in settle.lua
local NOTHING = {} -- of a usage of which nothing is known

-- Whatever is no plain number is unknown: "nan" and "1e99" are numbers, too, to Lua.
function usage.amount(word)
	return #word <= 14 and find(word, '^%d+$') and word + 0 or nil
end

function usage.parse(text)
	if text == '' then
		return NOTHING
	end
	local sent, first, read, written, uncached, output =
		match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')
	if not sent then
		return NOTHING
	end
	local amount = usage.amount
	return { sent = amount(sent), first = amount(first), read = amount(read),
		written = amount(written), uncached = amount(uncached), output = amount(output) }
end

-- What the event line says: unknown is six dashes.
function usage.words(text)
	if find(text, '|', 1, true) or find(text, '\n', 1, true) or find(text, '\r', 1, true) then
		return (gsub(text, '[\r\n|]', ' '))
	end
	return text == '' and '- - - - - -' or text
end

-- Whether an attempt without an answer was paid for, or may have been: `b=1`.
function usage.is_spent(used, text)
	return used.read or used.uncached or find(text, 'b=1', 1, true)
end

function usage.spend(lease, why, text)
	if usage.is_spent(usage.parse(text), text) then
		say('spent ' .. lease.lane .. ' ' .. lease.family .. ' ' .. format('%d', lease.g) .. ' ' ..
			lease.role .. ' ' .. why .. ' ' .. usage.words(text))
	end
end
