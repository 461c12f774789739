-- register.lua - the names Redis knows, in the order of docs/PROTOCOL.md.
--
-- All functions may run when memory is full: the producer's XADD is the only gate, and a
-- full Redis must be able to drain.

return doors
end -- of library, begun in base.lua

local functions

local function register(name, flag)
	redis.register_function({
		function_name = 'warmq_' .. name,
		flags = { flag or 'allow-oom' },
		callback = function(keys, args)
			if not functions then
				functions = library()
			end
			return functions[name](keys, args)
		end,
	})
end

-- Scheduler.
register('rule')
register('admit')
register('grant')
register('glance', 'no-writes')
register('ledger')
register('reap')
register('promote')
register('expire')
register('audit')
register('move')
-- Worker.
register('hello')
register('attach')
register('beat')
register('claim')
register('settle')
register('begin')
register('fail')
register('release')
register('bye')
register('settle_late')
-- Everybody.
register('cancel')
register('hold')
register('requeue')
register('drop')
register('restore')
register('pause')
register('unpark')
register('warm')
register('steer')
register('count', 'no-writes')
register('version', 'no-writes')
