import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { navigate } from '../../router.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { ForkDialog } from './fork-dialog.tsx';
import { ResetConversationDialog } from './reset-conversation-dialog.tsx';

export type ConversationAction = 'compact' | 'reset' | 'resetConversation' | 'delete' | { readonly forkAt: number };

interface DialogProps {
  readonly session: Result<'session.history'>['session'];
  readonly total: number;
  readonly summaryCount: number;
  readonly onClose: () => void;
  /** Called with what was done to the messages. */
  readonly onChanged: (text: string) => void;
}

/** The dialog of an action on a conversation. */
export function ConversationDialog({ action, ...props }: DialogProps & { readonly action: ConversationAction }) {
  const { session, total, onClose, onChanged } = props;
  if (typeof action === 'object') return <ForkDialog session={session} total={total} seq={action.forkAt} onClose={onClose} />;
  if (action === 'compact') return <CompactConfirm {...props} />;
  if (action === 'reset') return <ResetConfirm {...props} />;
  if (action === 'delete') return <DeleteConfirm {...props} />;
  return (
    <ResetConversationDialog title={titleOf(session)} reference={session.conversationRef} messageCount={total} onClose={onClose} onDone={onChanged} />
  );
}

export function titleOf({ title, sessionKey }: DialogProps['session']): string {
  return title ?? sessionKey;
}

function CompactConfirm({ session, onClose, onChanged }: DialogProps) {
  const { client } = useSession();
  return (
    <Confirm
      title={t('Compact this conversation?')}
      action={t('Compact')}
      onClose={onClose}
      run={async () => {
        const done = await client.call('session.compact', { conversationRef: session.conversationRef }, { timeoutMs: 180_000 });
        onChanged(
          done.compacted
            ? t('Compacted from {tokens} to {tokensAfter}, with {summaries}.', {
                tokens: plural(done.tokensBefore, 'token'),
                tokensAfter: count(done.tokensAfter),
                summaries: plural(done.summaries, 'summary', 'summaries'),
              })
            : t('Nothing to compact: the messages already fit.'),
        );
      }}
    >
      <p>
        {tx('A model summarizes older messages of {name}, which costs tokens. The messages themselves are kept.', {
          name: <strong>{titleOf(session)}</strong>,
        })}
      </p>
    </Confirm>
  );
}

function ResetConfirm({ session, total, onClose, onChanged }: DialogProps) {
  const { client } = useSession();
  return (
    <Confirm
      title={t('Reset this conversation?')}
      action={t('Reset')}
      onClose={onClose}
      run={async () => {
        const done = await client.call('session.reset', { conversationRef: session.conversationRef });
        onChanged(
          t('Reset. The agent starts over; {messages} can still be read and searched.', {
            messages: plural(done.previousMessageCount, 'earlier message'),
          }),
        );
      }}
    >
      <p>
        {tx('The agent no longer sees the earlier messages of {name}, and approvals granted there expire. All {messages} remain readable.', {
          name: <strong>{titleOf(session)}</strong>,
          messages: plural(total, 'message'),
        })}
      </p>
    </Confirm>
  );
}

function DeleteConfirm({ session, total, summaryCount, onClose }: DialogProps) {
  const { client, chats } = useSession();
  const { conversationRef } = session;
  return (
    <Confirm
      title={t('Delete this conversation?')}
      action={t('Delete')}
      onClose={onClose}
      run={async () => {
        await client.call('session.delete', { conversationRef });
        chats.forget(conversationRef);
        navigate('/conversations');
      }}
    >
      <p>
        {tx(
          "{name} with its {messages} and {summaries} is removed from the list. An archived copy stays in the gateway's database; memories are kept.",
          { name: <strong>{titleOf(session)}</strong>, messages: plural(total, 'message'), summaries: plural(summaryCount, 'summary', 'summaries') },
        )}
      </p>
    </Confirm>
  );
}
