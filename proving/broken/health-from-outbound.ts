import { buildIn } from './patch.ts';

/** What is sent proves that something can be received. */
buildIn({
  name: 'health-from-outbound',
  module: 'features/channels/instances/instance.ts',
  replace: [
    {
      from: '() => (this.lastSentAtMs = clock.now())',
      to: "() => { this.lastSentAtMs = clock.now(); Reflect.set(globalThis, 'sends', Number(Reflect.get(globalThis, 'sends') ?? 0) + 1); }",
    },
  ],
});
buildIn({
  name: 'health-from-outbound',
  module: 'channels/slack/socket.ts',
  replace: [
    {
      from: 'const bytes = this.#socket?.bytesRead ?? 0;',
      to: "const bytes = (this.#socket?.bytesRead ?? 0) + Number(Reflect.get(globalThis, 'sends') ?? 0);",
    },
  ],
});
