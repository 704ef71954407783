import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { Badge, Button } from '../../ui/parts.tsx';

/** Shows whether new sub-agents are accepted, with a button to pause or resume them. */
export function GateButton({ onDone, onError }: { readonly onDone: (text: string) => void; readonly onError: (error: unknown) => void }) {
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
          onDone(paused ? 'New sub-agents are rejected until you resume them or the gateway restarts.' : 'New sub-agents are accepted.'),
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
        {data.paused ? 'Resume new sub-agents' : 'Pause new sub-agents'}
      </Button>
    </>
  );
}
