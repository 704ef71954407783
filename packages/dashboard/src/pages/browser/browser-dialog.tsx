import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { isPreconditionFailed } from '../../data/errors.ts';
import { Pace } from '../../data/pace.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Badge, Button, Failure, Notice } from '../../ui/parts.tsx';
import { Recordings } from './recordings.tsx';
import { type InputEvent, joined, keyEvent, placeIn } from './typed-keys.ts';

type View = Result<'browser.view'>;

const waitMs = 10_000;
/** A page that changes all the time is read this often. */
const pauseMs = 150;

interface BrowserDialogProps {
  readonly agentId: string;
  readonly onClose: () => void;
}

/** Shows the browser of an agent: live, or what was recorded of it. */
export function BrowserDialog(props: BrowserDialogProps) {
  const [recorded, setRecorded] = useState(false);
  if (!recorded) return <LiveDialog {...props} onRecordings={() => setRecorded(true)} />;
  return (
    <Dialog title={t('Recordings of {agentId}’s browser', { agentId: props.agentId })} wide onClose={props.onClose}>
      <div className="dialog-body">
        <Recordings agentId={props.agentId} />
      </div>
      <footer>
        <Button onClick={() => setRecorded(false)}>{t('Live view')}</Button>
        <Button onClick={props.onClose}>{t('Close')}</Button>
      </footer>
    </Dialog>
  );
}

/** Shows the browser live; admins open addresses in it, take it over, click and type, and return it. */
function LiveDialog({ agentId, onClose, onRecordings }: BrowserDialogProps & { readonly onRecordings: () => void }) {
  const { admin, client } = useSession();
  const [round, setRound] = useState(0);
  const { shown, held, ended, error } = useView(agentId, round);
  const { send, failure } = useInput(agentId);
  const { busy, run, error: refused } = useAction();
  const takes = held && admin;
  const hold = (wanted: boolean) => run(async () => void (await client.call('browser.take_over', { agentId, held: wanted })));
  const open = (url: string) =>
    run(async () => {
      await client.call('browser.navigate', { agentId, url });
      setRound((before) => before + 1);
    });
  const problem = refused ?? failure ?? error;
  return (
    <Dialog title={t('Browser of {agentId}', { agentId })} wide onClose={onClose}>
      <div className="dialog-body">
        <p className="facts-line">
          {held && <Badge tone="warn">{t('Taken over')}</Badge>}
          {shown !== undefined && !ended && (
            <>
              <strong>{shown.title}</strong> <span className="mono browser-address">{shown.url}</span>
            </>
          )}
        </p>
        {admin && !held && <AddressForm busy={busy} onOpen={open} />}
        {takes && <p className="hint">{t('Click the picture and type. The agent waits until you return the browser. Esc closes this window.')}</p>}
        {shown !== undefined && !ended && <Picture shown={shown} {...(takes && { send })} />}
        <div role="status">
          {ended && (
            <Notice tone="neutral">{tx('The browser does not run{admin}.', { admin: admin ? t(': open an address to start it') : '' })}</Notice>
          )}
        </div>
        {problem !== undefined && <Failure error={problem} />}
      </div>
      <footer>
        {takes &&
          [t('Tab'), t('Escape')].map((key) => (
            <Button key={key} small onClick={() => send({ type: 'key', key })}>
              {key === 'Escape' ? t('Esc') : key}
            </Button>
          ))}
        {admin && !ended && (
          <Button look={held ? 'primary' : 'plain'} icon="hand" disabled={busy || shown === undefined} onClick={() => hold(!held)}>
            {held ? t('Return to agent') : t('Take over')}
          </Button>
        )}
        <Button onClick={onRecordings}>{t('Recordings')}</Button>
        <Button onClick={onClose}>{t('Close')}</Button>
      </footer>
    </Dialog>
  );
}

function AddressForm({ busy, onOpen }: { readonly busy: boolean; readonly onOpen: (url: string) => void }) {
  const [url, setUrl] = useState('');
  return (
    <form
      className="browser-open"
      onSubmit={(event) => {
        event.preventDefault();
        if (url.trim() !== '') onOpen(url.trim());
      }}
    >
      <input
        type="text"
        inputMode="url"
        aria-label={t('Address')}
        placeholder="https://…"
        value={url}
        onChange={(event) => setUrl(event.target.value)}
      />
      <Button submit small disabled={busy || url.trim() === ''}>
        {busy ? t('Opening…') : t('Open')}
      </Button>
    </form>
  );
}

/** The page as a picture; with `send`, a place to click and type. */
function Picture({ shown, send }: { readonly shown: View; readonly send?: (event: InputEvent) => void }) {
  const { jpeg, width, height, title } = shown;
  const place = (event: React.MouseEvent) => placeIn(event.currentTarget.getBoundingClientRect(), shown, event);
  const alt = t('The page {title}', { title });
  // An empty page is never drawn.
  const picture =
    jpeg === undefined ? (
      <div className="browser-picture browser-blank" role="img" aria-label={alt} style={{ aspectRatio: `${width} / ${height}` }} />
    ) : (
      <img className="browser-picture" src={`data:image/jpeg;base64,${jpeg}`} width={width} height={height} alt={alt} draggable={false} />
    );
  if (send === undefined) return picture;
  return (
    <div
      className="browser-control"
      role="application"
      aria-label={t('Click and type into the page')}
      tabIndex={0}
      onClick={(event) => send({ type: 'click', ...place(event), clicks: Math.min(3, Math.max(1, event.detail)) })}
      onWheel={(event) => send({ type: 'scroll', ...place(event), dx: event.deltaX, dy: event.deltaY })}
      onKeyDown={(event) => {
        const typed = keyEvent(event.nativeEvent);
        if (typed === undefined) return;
        event.preventDefault();
        send(typed);
      }}
      onPaste={(event) => {
        event.preventDefault();
        const text = event.clipboardData.getData('text').slice(0, 4096);
        if (text !== '') send({ type: 'text', text });
      }}
    >
      {picture}
    </div>
  );
}

/** Follows the picture until the browser ends; `round` starts again. */
function useView(agentId: string, round: number) {
  const { client } = useSession();
  const [shown, setShown] = useState<View>();
  const [held, setHeld] = useState(false);
  const [ended, setEnded] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const left = new AbortController();
    const { signal } = left;
    const pace = new Pace(performance.now());
    const follow = async (): Promise<void> => {
      let after: number | undefined;
      while (!signal.aborted) {
        // Short waits notice a take-over of somebody else.
        const { jpeg, ...view } = await client.call(
          'browser.view',
          { agentId, ...(after !== undefined && { after, waitMs: waitMs / 5 }) },
          { signal },
        );
        after = view.version;
        setHeld(view.held);
        setEnded(false);
        setShown((before) => ({ ...view, ...picture(jpeg ?? (before?.tabId === view.tabId ? before.jpeg : undefined)) }));
        await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, pace.next(performance.now()))));
      }
    };
    follow().catch((thrown: unknown) => {
      if (signal.aborted) return;
      setHeld(false);
      setEnded(true);
      setError(isPreconditionFailed(thrown) ? undefined : thrown);
    });
    return () => left.abort();
  }, [client, agentId, round]);
  return { shown, held, ended, error };
}

const picture = (jpeg: string | undefined) => (jpeg === undefined ? {} : { jpeg });

/** Delivers what is clicked and typed in its order; what comes while a call is under way goes with the next one. */
function useInput(agentId: string): { readonly send: (event: InputEvent) => void; readonly failure: unknown } {
  const { client } = useSession();
  const [failure, setFailure] = useState<unknown>();
  const pending = useRef<InputEvent[]>([]);
  const busy = useRef(false);
  const deliver = async (): Promise<void> => {
    busy.current = true;
    try {
      while (pending.current.length > 0) {
        const events = pending.current.splice(0);
        await client.call('browser.input', { agentId, events });
        setFailure(undefined);
      }
    } catch (thrown) {
      pending.current = [];
      setFailure(thrown);
    } finally {
      busy.current = false;
    }
  };
  const send = (event: InputEvent): void => {
    pending.current = joined(pending.current, event);
    if (!busy.current) void deliver();
  };
  return { send, failure };
}
