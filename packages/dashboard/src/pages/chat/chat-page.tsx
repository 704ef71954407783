import { useEffect, useMemo, useRef, useState } from 'react';
import type { Thread } from '../../data/chats.ts';
import { useSession } from '../../data/context.ts';
import { type Store, useStore } from '../../data/store.ts';
import { navigate } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, IconButton, Skeleton } from '../../ui/parts.tsx';
import { Composer } from './composer.tsx';
import { ConversationPicker } from './conversation-picker.tsx';
import { MessageList } from './message-list.tsx';

/** Conversations beside the one that is open: `/chat` begins one, `/chat/<reference>` goes on with one. */
export function ChatPage({ reference }: { readonly reference: string | undefined }) {
  const { chats } = useSession();
  const draft = useStore(chats.draft);
  const [listOpen, setListOpen] = useState(false);
  const thread = useMemo(() => (reference === undefined ? draft : chats.open(reference)), [chats, reference, draft]);
  const begin = (agentId?: string): void => {
    chats.begin(agentId);
    setListOpen(false);
    navigate('/chat');
  };
  return (
    <div className="chat">
      <h1 className="visually-hidden">Chat</h1>
      <ConversationPicker
        current={reference}
        open={listOpen}
        onBegin={() => begin()}
        onPick={() => setListOpen(false)}
        onClose={() => setListOpen(false)}
      />
      <ThreadView key={thread.get().key} thread={thread} covered={listOpen} onBegin={begin} onShowList={() => setListOpen(true)} />
    </div>
  );
}

function ThreadView({
  thread,
  covered,
  onBegin,
  onShowList,
}: {
  readonly thread: Store<Thread>;
  /** True while the list of conversations lies over it, as it does on a phone. */
  readonly covered: boolean;
  readonly onBegin: (agentId?: string) => void;
  readonly onShowList: () => void;
}) {
  const session = useSession();
  const { chats, live } = session;
  const state = useStore(thread);
  const { ref, messages, running } = state;
  // The field of the message is made anew when its words come from elsewhere than its own keys.
  const [round, setRound] = useState(0);

  const listButton = useRef<HTMLButtonElement>(null);
  const wasCovered = useRef(covered);
  useEffect(() => {
    if (wasCovered.current && !covered) listButton.current?.focus();
    wasCovered.current = covered;
  }, [covered]);

  // The address follows as soon as the server knows the conversation; the page stays as it is.
  useEffect(() => {
    if (ref === undefined || running || location.pathname !== '/chat') return;
    navigate(`/chat/${ref}`, { replace: true });
    chats.begin();
  }, [ref, running, chats]);

  // Somebody else may talk in the same conversation.
  useEffect(
    () =>
      live.listen(({ kind, payload }) => {
        const about = typeof payload === 'object' && payload !== null && 'conversationRef' in payload ? payload.conversationRef : undefined;
        const own = thread.get();
        if (kind === 'message:sent' && about === own.ref && own.ref !== undefined && !own.running && !ownAnswer(own, payload)) chats.reload(thread);
      }),
    [live, chats, thread],
  );

  return (
    <section className="thread" aria-label="Conversation" inert={covered}>
      <header className="thread-head">
        <span className="narrow-only">
          <IconButton ref={listButton} icon="list" label="Show the conversations" expanded={covered} onClick={onShowList} />
        </span>
        <AgentPicker state={state} onChange={onBegin} />
        <span className="grow" />
        {ref !== undefined && (
          <PageLink to={`/conversations/${ref}`} className="button small">
            Details
          </PageLink>
        )}
        <Button small icon="plus" onClick={() => onBegin()}>
          New chat
        </Button>
      </header>
      {state.loading && messages.length === 0 ? (
        <div className="messages">
          <Skeleton lines={6} />
        </div>
      ) : state.loadError !== undefined ? (
        <div className="messages">
          <Failure error={state.loadError} title="The conversation could not be loaded." onRetry={() => chats.reload(thread)} />
        </div>
      ) : messages.length === 0 ? (
        <div className="messages">
          <Empty title={`Ask ${state.agentId === '' ? 'the agent' : state.agentId} something`}>
            <p>Answers arrive as they are written. Files can be attached by the button, by dropping or by pasting them.</p>
          </Empty>
        </div>
      ) : (
        <MessageList
          state={state}
          onRetry={() => void chats.retry(thread)}
          onEdit={() => {
            chats.takeBack(thread);
            setRound(round + 1);
          }}
          onEarlier={() => chats.loadEarlier(thread)}
        />
      )}
      <Composer
        key={round}
        initial={chats.unsent(thread)}
        onChange={(unsent) => chats.keepUnsent(thread, unsent)}
        running={running}
        disabled={state.loadError !== undefined || (state.loading && messages.length === 0)}
        onSend={(text, attachments) => void chats.send(thread, text, attachments)}
        onStop={() => chats.stop(thread)}
      />
    </section>
  );
}

/** True when the event tells of an answer that this tab has received itself. */
function ownAnswer({ messages }: Thread, payload: unknown): boolean {
  const content = typeof payload === 'object' && payload !== null && 'content' in payload ? payload.content : undefined;
  const last = messages.at(-1);
  if (last === undefined || typeof content !== 'string') return false;
  // One that was stopped here had a few words more on their way.
  return last.state === 'stopped' ? content.startsWith(last.text) : content === last.text;
}

/** An agent is chosen before the first message; afterwards the conversation is this agent's. */
function AgentPicker({ state, onChange }: { readonly state: Thread; readonly onChange: (agentId: string) => void }) {
  const session = useSession();
  const agents = useStore(session.agents);
  if (state.messages.length > 0 || state.ref !== undefined || agents.length < 2) return <span className="thread-agent">{state.agentId}</span>;
  return (
    <select aria-label="Agent" value={state.agentId} onChange={(event) => onChange(event.target.value)}>
      {[...new Set([...agents, state.agentId])].map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </select>
  );
}
