import { buildIn } from './patch.ts';

/** A message is acknowledged to its platform before it is stored. */
buildIn({
  name: 'channel-acks-early',
  module: 'features/channels/instances/instance.ts',
  replace: [
    {
      from: 'const dropped = await take(this.name, received, reached);',
      to: 'const dropped: string[] = []; setTimeout(() => void take(this.name, received, reached), 300);',
    },
  ],
});
