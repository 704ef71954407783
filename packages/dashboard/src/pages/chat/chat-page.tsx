import { t } from '../../language.ts';
import { Suspense, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { ChatMessage, Thread } from '../../data/chat-thread.ts';
import { useAgentName } from '../../data/agent-names.ts';
import { useSession } from '../../data/context.ts';
import { suggestTitle } from '../../data/conversations.ts';
import { hasNoModel } from '../../data/first-run.ts';
import { type Store, useStore } from '../../data/store.ts';
import { BrowserDialog, PromptsDialog, SystemPromptDialog } from '../../lazy-pages.ts';
import { ArtifactContext } from '../../markdown/artifact-context.ts';
import { navigate } from '../../router.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, IconButton, Skeleton } from '../../ui/parts.tsx';
import { ArtifactPanel, type OpenArtifact } from './artifact-panel.tsx';
import { BranchSwitch } from './branch-switch.tsx';
import type { ChatCommand } from './chat-commands.ts';
import { Composer } from './composer.tsx';
import { ConversationPicker } from './conversation-picker.tsx';
import { MessageList } from './message-list.tsx';
import { ModelPicker } from './model-picker.tsx';
import { QueueList } from './queue-list.tsx';

/** The conversation list and the open conversation: `/chat` starts one, `/chat/<reference>` continues one. */
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
      <h1 className="visually-hidden">{t('Chat')}</h1>
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
  /** True while the conversation list covers the thread, as on a phone. */
  readonly covered: boolean;
  readonly onBegin: (agentId?: string) => void;
  readonly onShowList: () => void;
}) {
  const session = useSession();
  const { chats, live, client, health, admin } = session;
  const state = useStore(thread);
  const { ref, messages, running } = state;
  const agentName = useAgentName();
  const [dialog, setDialog] = useState<'prompt' | 'prompts'>();
  // Remounts the message field when its text is set from outside.
  const [round, setRound] = useState(0);
  const { run: runAction, error: actionError } = useAction();
  const [artifact, setArtifact] = useState<OpenArtifact>();
  const openArtifact = useCallback((info: string | undefined, text: string) => setArtifact({ info, text }), []);

  const listButton = useRef<HTMLButtonElement>(null);
  const wasCovered = useRef(covered);
  useEffect(() => {
    if (wasCovered.current && !covered) listButton.current?.focus();
    wasCovered.current = covered;
  }, [covered]);

  // Updates the address as soon as the server knows the conversation, without reloading the page.
  useEffect(() => {
    if (ref === undefined || running || location.pathname !== '/chat') return;
    navigate(`/chat/${ref}`, { replace: true });
    chats.begin();
    const isAnswered = thread.get().messages.at(-1)?.state === 'done';
    if (isAnswered && !hasNoModel(health.state.get().health)) suggestTitle(client, ref);
  }, [ref, running, chats, thread, client, health]);

  const branch = useCallback(
    async (question: ChatMessage) => {
      const made = await chats.branch(thread, question);
      if (made !== undefined) navigate(`/chat/${made}`);
    },
    [chats, thread],
  );

  const regenerate = useCallback(async () => {
    const made = await chats.regenerate(thread);
    if (made !== undefined) navigate(`/chat/${made}`);
  }, [chats, thread]);

  const commands = useMemo<readonly ChatCommand[]>(() => {
    const inConversation: readonly ChatCommand[] =
      ref === undefined
        ? []
        : [
            {
              name: 'rename',
              argument: 'TITLE',
              text: t('Renames the conversation'),
              run: (title) => void (title !== '' && runAction(() => client.call('session.update', { conversationRef: ref, title }))),
            },
            {
              name: 'compact',
              text: t('Summarises the conversation, so that less of it is sent to the model'),
              run: (focus) => runAction(() => client.call('session.compact', { conversationRef: ref, ...(focus !== '' && { instructions: focus }) })),
            },
            { name: 'details', text: t('Opens the page of the conversation'), run: () => navigate(`/conversations/${ref}`) },
          ];
    return [
      { name: 'new', text: t('Starts another chat'), run: () => onBegin() },
      { name: 'agent', argument: 'NAME', text: t('Starts a chat with another agent'), run: (name) => onBegin(name === '' ? undefined : name) },
      { name: 'stop', text: t('Stops the answer'), run: () => chats.stop(thread) },
      { name: 'prompts', text: t('Opens your saved prompts'), run: () => setDialog('prompts') },
      ...inConversation,
    ];
  }, [ref, client, chats, thread, onBegin, runAction]);

  // Another client may write to the same conversation.
  useEffect(
    () =>
      live.listen(({ kind, payload }) => {
        const about = typeof payload === 'object' && payload !== null && 'conversationRef' in payload ? payload.conversationRef : undefined;
        const own = thread.get();
        if (kind !== 'message:sent' || about !== own.ref || own.ref === undefined || own.running) return;
        if (!ownAnswer(own, payload)) chats.reload(thread);
        else if (own.messages.at(-1)?.state === 'stopped') void chats.complete(thread);
      }),
    [live, chats, thread],
  );

  const conversation = (
    <section className="thread" aria-label={t('Conversation')} inert={covered}>
      <header className="thread-head">
        <span className="narrow-only">
          <IconButton ref={listButton} icon="list" label={t('Show conversations')} expanded={covered} onClick={onShowList} />
        </span>
        <AgentPicker state={state} onChange={onBegin} />
        {admin && state.agentId !== '' && (
          <IconButton
            icon="info"
            label={t('System prompt of {agentId}', { agentId: agentName(state.agentId) })}
            onClick={() => setDialog('prompt')}
          />
        )}
        <ModelPicker agentId={state.agentId} choice={state} onChange={(choice) => chats.chooseModel(thread, choice)} />
        {state.forkedFrom !== undefined && (
          <PageLink to={`/chat/${state.forkedFrom}`} className="button small quiet">
            {t('Branch: show the original')}
          </PageLink>
        )}
        <span className="grow" />
        {ref !== undefined && messages.length > 0 && <BranchSwitch reference={ref} />}
        {state.agentId !== '' && messages.length > 0 && <BrowserButton agentId={state.agentId} />}
        {ref !== undefined && (
          <PageLink to={`/conversations/${ref}`} className="button small">
            {t('Details')}
          </PageLink>
        )}
        <span className="wide-only">
          <Button small icon="plus" onClick={() => onBegin()}>
            {t('New chat')}
          </Button>
        </span>
        <span className="narrow-only">
          <IconButton icon="plus" label={t('New chat')} onClick={() => onBegin()} />
        </span>
      </header>
      {state.loading && messages.length === 0 ? (
        <div className="messages">
          <Skeleton lines={6} />
        </div>
      ) : state.loadError !== undefined ? (
        <div className="messages">
          <Failure error={state.loadError} title={t('Failed to load the conversation.')} onRetry={() => chats.reload(thread)} />
        </div>
      ) : messages.length === 0 ? (
        <div className="messages">
          <EmptyThread agentName={state.agentId === '' ? t('the agent') : agentName(state.agentId)} />
        </div>
      ) : (
        <MessageList
          state={state}
          onRetry={() => void chats.retry(thread)}
          onEdit={() => {
            chats.editLastQuestion(thread);
            setRound(round + 1);
          }}
          onBranch={branch}
          onRegenerate={ref === undefined ? undefined : regenerate}
          onContinue={() => void chats.send(thread, t('Continue where you stopped.'), [])}
          onEarlier={() => chats.loadEarlier(thread)}
        />
      )}
      {actionError !== undefined && <Failure error={actionError} />}
      {dialog !== undefined && (
        <Suspense fallback={null}>
          {dialog === 'prompt' ? (
            <SystemPromptDialog agentId={state.agentId} name={agentName(state.agentId)} onClose={() => setDialog(undefined)} />
          ) : (
            <PromptsDialog
              onUse={(text) => {
                chats.keepUnsent(thread, { ...chats.unsent(thread), text });
                setRound(round + 1);
              }}
              onClose={() => setDialog(undefined)}
            />
          )}
        </Suspense>
      )}
      {state.queue.length > 0 && (
        <Suspense fallback={null}>
          <QueueList
            queue={state.queue}
            running={running}
            onSendNow={(key) => void chats.sendNow(thread, key)}
            onGive={(key) => void chats.give(thread, key)}
            onRemove={({ key }) => chats.unqueue(thread, key)}
          />
        </Suspense>
      )}
      <Composer
        key={round}
        commands={commands}
        agentId={state.agentId}
        initial={chats.unsent(thread)}
        onChange={(unsent) => chats.keepUnsent(thread, unsent)}
        running={running}
        disabled={state.loadError !== undefined || (state.loading && messages.length === 0)}
        onSend={(text, attachments) => void chats.send(thread, text, attachments)}
        onStop={() => chats.stop(thread)}
      />
    </section>
  );
  return (
    <ArtifactContext value={openArtifact}>
      {conversation}
      {artifact !== undefined && (
        <ArtifactPanel
          open={artifact}
          messages={messages}
          onShow={(text) => setArtifact({ info: artifact.info, text })}
          onClose={() => setArtifact(undefined)}
        />
      )}
    </ArtifactContext>
  );
}

/** Opens the browser of the agent while it runs. */
function BrowserButton({ agentId }: { readonly agentId: string }) {
  const { client } = useSession();
  const [open, setOpen] = useState(false);
  const { data } = useLoad(['browser.tabs', agentId], (signal) => client.call('browser.tabs', { agentId }, { signal }), {
    changedBy: ['tool:finished'],
    settleMs: 1500,
  });
  if (!open && (data === undefined || data.tabs.length === 0)) return null;
  return (
    <>
      <Button small icon="screen" onClick={() => setOpen(true)}>
        {t('Browser')}
      </Button>
      {open && (
        <Suspense fallback={null}>
          <BrowserDialog agentId={agentId} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

/** Says what to do in a conversation without messages. */
function EmptyThread({ agentName }: { readonly agentName: string }) {
  const { admin, health } = useSession();
  if (hasNoModel(useStore(health.state).health))
    return (
      <Empty title={t('No model is connected')}>
        <p>{t('The built-in offline model answers every question alike, so that you can look around.')}</p>
        {admin ? (
          <PageLink to="/start" className="button primary">
            {t('Connect a model')}
          </PageLink>
        ) : (
          <p>{t('Somebody with an admin token can connect one under Get started.')}</p>
        )}
      </Empty>
    );
  return (
    <Empty title={t('Ask {agentName} something', { agentName })}>
      <p>{t('Answers are streamed. Attach files with the button, by drag and drop, or by pasting.')}</p>
    </Empty>
  );
}

/** True when the event reports an answer that this tab has already received. */
function ownAnswer({ messages }: Thread, payload: unknown): boolean {
  const content = typeof payload === 'object' && payload !== null && 'content' in payload ? payload.content : undefined;
  const last = messages.at(-1);
  if (last === undefined || typeof content !== 'string') return false;
  // The server may store a few more characters of an answer that was stopped here.
  return last.state === 'stopped' ? content.startsWith(last.text) : content === last.text;
}

/** Selects the agent before the first message; it can't be changed afterwards. */
function AgentPicker({ state, onChange }: { readonly state: Thread; readonly onChange: (agentId: string) => void }) {
  const session = useSession();
  const agents = useStore(session.agents);
  const nameOf = useAgentName();
  if (state.messages.length > 0 || state.ref !== undefined || agents.length < 2) return <span className="thread-agent">{nameOf(state.agentId)}</span>;
  return (
    <select aria-label={t('Agent')} value={state.agentId} onChange={(event) => onChange(event.target.value)}>
      {[...new Set([...agents, state.agentId])].map((id) => (
        <option key={id} value={id}>
          {nameOf(id)}
        </option>
      ))}
    </select>
  );
}
