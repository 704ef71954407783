import { t } from '../language.ts';
import { useEffect, useRef } from 'react';
import type { ApprovalsState } from './approvals.ts';
import { useSession } from './context.ts';
import { createStore, type Store, useStore } from './store.ts';
import type { WaitingItem, WaitingState } from './waiting.ts';

const storageKey = 'gatehouse.notify';

/** `unsupported`: the browser has no notifications, or only over HTTPS; `refused`: the user has blocked them in the browser. */
export type NoticeState = 'on' | 'off' | 'refused' | 'unsupported';

function current(): NoticeState {
  if (!('Notification' in globalThis) || !isSecureContext) return 'unsupported';
  if (Notification.permission === 'denied') return 'refused';
  return Notification.permission === 'granted' && localStorage.getItem(storageKey) === 'on' ? 'on' : 'off';
}

/** Whether this browser notifies the user of what waits. */
export const notices: Store<NoticeState> = createStore(current());

/** Asks the browser for permission when it is switched on for the first time. */
export async function setNotices(isOn: boolean): Promise<void> {
  if (isOn && Notification.permission === 'default') await Notification.requestPermission();
  if (isOn) localStorage.setItem(storageKey, 'on');
  else localStorage.removeItem(storageKey);
  notices.set(current());
}

/** Lock screens show notifications, so they carry no text of models or tools. */
const titles: Readonly<Record<WaitingItem['kind'], string>> = {
  gate: t('A graph asks for your approval'),
  pairing: t('Somebody wants to write to an agent'),
  message: t('A message could not be delivered for certain'),
  job: t('A job failed'),
  webhook: t('A webhook failed'),
};

interface Due {
  readonly key: string;
  readonly title: string;
  readonly text: string;
}

/** Returns the items waiting for the user, each with a title of its kind and its name. */
export function dueOf({ requests }: ApprovalsState, { items }: WaitingState): Due[] {
  return [
    ...requests.map(({ requestId, toolName }) => ({ key: requestId, title: t('A call needs your approval'), text: toolName })),
    ...items.map((item) => ({
      key: item.key,
      title: titles[item.kind],
      text:
        item.kind === 'gate'
          ? item.graph
          : item.kind === 'job'
            ? item.job.name
            : item.kind === 'webhook'
              ? item.webhook.mapping
              : item.kind === 'pairing'
                ? item.pairing.channelInstanceId
                : item.message.endpoint.channelInstanceId,
    })),
  ];
}

/** Shows a notification for each item that comes while the tab is not in front; `onOpen` is called when the user clicks it. */
export function useNotices(onOpen: () => void): void {
  const { approvals, waiting } = useSession();
  const pending = useStore(approvals.state);
  const others = useStore(waiting.state);
  const state = useStore(notices);
  const known = useRef<ReadonlySet<string>>(undefined);
  const open = useRef(onOpen);
  useEffect(() => {
    open.current = onOpen;
  });
  useEffect(() => {
    if (pending.loading || others.loading) return;
    const due = dueOf(pending, others);
    const before = known.current;
    known.current = new Set(due.map(({ key }) => key));
    // What waited already when the page was opened is shown there.
    if (before === undefined || state !== 'on' || document.hasFocus()) return;
    for (const { key, title, text } of due.filter((one) => !before.has(one.key))) notify(key, title, text, () => open.current());
  }, [pending, others, state]);
}

function notify(key: string, title: string, body: string, onOpen: () => void): void {
  try {
    // The tag keeps several tabs from showing the same item twice.
    const notice = new Notification(title, { body, tag: key });
    notice.addEventListener('click', () => {
      window.focus();
      onOpen();
      notice.close();
    });
  } catch {
    // Some phones allow notifications from service workers only.
    notices.set('unsupported');
  }
}
