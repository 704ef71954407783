import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { Confirm } from '../../ui/dialog.tsx';

/** Erases the content of a conversation and, optionally, the memories from it; reports the counts. */
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
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [memory, setMemory] = useState(false);
  const [purgeDerived, setPurgeDerived] = useState(false);
  return (
    <Confirm
      title={t('Erase the content of this conversation?')}
      action={t('Erase')}
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
        {tx(
          'The {messages} of {name} and their summaries are erased permanently. The conversation itself stays, so that its users can continue in it.',
          { messages: plural(messageCount, 'message'), name: <strong>{title}</strong> },
        )}
      </p>
      <fieldset>
        <legend>{t('Also erase')}</legend>
        <label className="check">
          <input type="checkbox" checked={memory} onChange={() => setMemory(!memory)} />
          {t('Memories from this conversation')}
        </label>
        <label className="check">
          <input type="checkbox" checked={memory && purgeDerived} disabled={!memory} onChange={() => setPurgeDerived(!purgeDerived)} />
          {t('Memories derived from those, even if other conversations contributed')}
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
  return t('Erased: {parts}.{memories}', {
    parts: parts.join(', '),
    memories:
      unlinked > 0 ? ` ${t('{memories} kept without this source.', { memories: plural(unlinked, 'derived memory', 'derived memories') })}` : '',
  });
}
