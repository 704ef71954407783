import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { Badge, Button } from '../../ui/parts.tsx';

/** Whether new sub-agents are taken, and the switch for it. */
export function GateButton({ onDone, onError }: { readonly onDone: (words: string) => void; readonly onError: (error: unknown) => void }) {
  const { client } = useSession();
  const [busy, setBusy] = useState(false);
  const gate = useLoad('gate of sub-agents', (signal) => client.call('subagent.status', {}, { signal }));
  const { data, reload } = gate;
  if (data === undefined) return null;
  const change = (): void => {
    setBusy(true);
    onError(undefined);
    client
      .call(data.paused ? 'subagent.resume' : 'subagent.pause')
      .then(
        ({ paused }) =>
          onDone(paused ? 'New sub-agents are refused until this is resumed or the gateway starts again.' : 'New sub-agents are taken.'),
        onError,
      )
      .finally(() => {
        setBusy(false);
        reload();
      });
  };
  return (
    <>
      {!data.acceptingSpawns && <Badge tone="warn">stopping</Badge>}
      {data.paused && <Badge tone="warn">paused</Badge>}
      <Button icon={data.paused ? 'play' : 'pause'} disabled={busy} onClick={change}>
        {data.paused ? 'Take new sub-agents' : 'Pause new sub-agents'}
      </Button>
    </>
  );
}
