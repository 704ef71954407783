import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { Confirm } from '../../ui/dialog.tsx';

/** Erases what a conversation holds, and if wanted what was remembered of it; tells the counts. */
export function ResetConversationDialog({
  title,
  reference,
  messageCount,
  onClose,
  onDone,
}: {
  readonly title: string;
  readonly reference: string;
  readonly messageCount: number;
  readonly onClose: () => void;
  readonly onDone: (words: string) => void;
}) {
  const { client } = useSession();
  const [memory, setMemory] = useState(false);
  const [purgeDerived, setPurgeDerived] = useState(false);
  return (
    <Confirm
      title="Erase the content of this conversation?"
      action="Erase"
      onClose={onClose}
      run={async () => {
        const done = await client.call('session.reset_conversation', {
          conversationRef: reference,
          ...(memory && { memory, ...(purgeDerived && { purgeDerived }) }),
        });
        onDone(describeErased(done));
      }}
    >
      <p>
        The {plural(messageCount, 'message')} of <strong>{title}</strong> and the summaries of them are erased for good. Its name stays, so that the
        same people can go on in it.
      </p>
      <fieldset>
        <legend>Erase as well</legend>
        <label className="check">
          <input type="checkbox" checked={memory} onChange={() => setMemory(!memory)} />
          Memories that come from it
        </label>
        <label className="check">
          <input type="checkbox" checked={memory && purgeDerived} disabled={!memory} onChange={() => setPurgeDerived(!purgeDerived)} />
          What was derived from those, also where other conversations took part
        </label>
      </fieldset>
    </Confirm>
  );
}

function describeErased(done: Result<'session.reset_conversation'>): string {
  const parts = [
    plural(done.messagesDeleted, 'message'),
    plural(done.summariesDeleted, 'summary', 'summaries'),
    done.memoriesDeleted === undefined ? undefined : plural(done.memoriesDeleted, 'memory', 'memories'),
    done.derivedDeleted === undefined ? undefined : plural(done.derivedDeleted, 'derived memory', 'derived memories'),
  ].filter((part) => part !== undefined);
  const unlinked = done.derivedUnlinked ?? 0;
  return `Erased: ${parts.join(', ')}.${unlinked > 0 ? ` ${plural(unlinked, 'derived memory', 'derived memories')} lost a source and stay.` : ''}`;
}
