import { t } from '../../language.ts';
import type { Params, Result } from '@gatehouse/contract';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import { isNotFound } from '../../data/errors.ts';
import { Pace } from '../../data/pace.ts';
import { typedBy } from './terminal-keys.ts';
import { TerminalScreen } from './terminal-screen.tsx';

type Screen = Result<'background.screen'>;
type Shown = Screen & { readonly lines: NonNullable<Screen['lines']> };

const waitMs = 10_000;
/** A screen that changes all the time is read this often. */
const pauseMs = 80;
const shortcuts = [
  [t('Tab'), 'tab'],
  [t('Esc'), 'escape'],
  ['Ctrl+C', 'ctrl+c'],
] as const;

/** Shows the screen of a terminal session live; admins type into it. */
export function TerminalDialog({ id, title, onClose }: { readonly id: string; readonly title: string; readonly onClose: () => void }) {
  const { admin } = useSession();
  const { shown, ended, error } = useScreen(id);
  const { send, failure } = useTyping(id);
  return (
    <Dialog title={title} wide onClose={onClose}>
      <div className="dialog-body">
        {admin && !ended && (
          <p className="hint">{t('Click the screen and type: the program runs what you type, without an approval. Esc closes this window.')}</p>
        )}
        {shown !== undefined && (
          <div
            className="terminal"
            {...(admin && {
              role: 'textbox',
              'aria-multiline': true,
              'aria-label': t('Type into the terminal'),
              tabIndex: 0,
              onKeyDown(event: React.KeyboardEvent) {
                const typed = typedBy(event.nativeEvent);
                if (typed === undefined || ended) return;
                event.preventDefault();
                send(typed);
              },
              onPaste(event: React.ClipboardEvent) {
                event.preventDefault();
                send({ text: event.clipboardData.getData('text').slice(0, 4096) });
              },
            })}
          >
            <TerminalScreen {...shown} />
          </div>
        )}
        <div role="status">{ended && <Notice tone="neutral">{t('The session has ended.')}</Notice>}</div>
        {(failure ?? error) !== undefined && <Failure error={failure ?? error} />}
      </div>
      <footer>
        {admin &&
          shortcuts.map(([label, key]) => (
            <Button key={key} small disabled={ended} onClick={() => send({ keys: [key] })}>
              {label}
            </Button>
          ))}
        <Button onClick={onClose}>{t('Close')}</Button>
      </footer>
    </Dialog>
  );
}

/** Follows the screen until the session ends. */
function useScreen(id: string): { readonly shown: Shown | undefined; readonly ended: boolean; readonly error: unknown } {
  const { client } = useSession();
  const [shown, setShown] = useState<Shown>();
  const [ended, setEnded] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const left = new AbortController();
    const { signal } = left;
    const pace = new Pace(performance.now());
    const follow = async (): Promise<void> => {
      let after: number | undefined;
      while (!signal.aborted) {
        const { lines, ...screen } = await client.call('background.screen', { id, waitMs, ...(after !== undefined && { after }) }, { signal });
        after = screen.version;
        if (lines !== undefined) setShown({ ...screen, lines });
        await new Promise((resolve) => setTimeout(resolve, Math.max(pauseMs, pace.next(performance.now()))));
      }
    };
    follow().catch((thrown: unknown) => {
      if (signal.aborted) return;
      if (isNotFound(thrown)) setEnded(true);
      else setError(thrown);
    });
    return () => left.abort();
  }, [client, id]);
  return { shown, ended, error };
}

/** Sends what is typed in its order. */
function useTyping(id: string): { readonly send: (typed: Omit<Params<'background.type'>, 'id'>) => void; readonly failure: unknown } {
  const { client } = useSession();
  const [failure, setFailure] = useState<unknown>();
  const last = useRef<Promise<unknown>>(Promise.resolve());
  const send = (typed: Omit<Params<'background.type'>, 'id'>): void => {
    last.current = last.current.then(() => client.call('background.type', { id, ...typed })).then(() => setFailure(undefined), setFailure);
  };
  return { send, failure };
}
