import { buildIn } from './patch.ts';

/** A message is marked as being sent after it was sent. */
const begin = 'await db.write(beginSend, { id: part.id, bootId, atMs: clock.now() })';
buildIn({
  name: 'channel-sends-first',
  module: 'features/channels/delivery/sender.ts',
  replace: [
    { from: `if (signal.aborted || !(${begin})) return;`, to: 'if (signal.aborted) return;' },
    {
      from: 'const alert = await db.write(finishSend, end);',
      to: 'await db.write(beginSend, { id: end.id, bootId: end.bootId, atMs: end.atMs }); const alert = await db.write(finishSend, end);',
    },
  ],
});
