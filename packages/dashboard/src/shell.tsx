import { isLanguage, language, languageNames, setLanguage, t, tx } from './language.ts';
import { Component, type ReactNode, Suspense, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { useSession } from './data/context.ts';
import { useNotices } from './data/notices.ts';
import { hasNoModel, stepNames, useFirstRun, useOffersFirstRun } from './data/first-run.ts';
import {
  AgentPage,
  AgentsPage,
  AuditPage,
  ChannelsPage,
  EvalsPage,
  EventsPage,
  ExplorerPage,
  ExecutionsPage,
  GraphsPage,
  HealthPage,
  HelpPage,
  InboxPage,
  KnowledgePage,
  LogsPage,
  MediaPage,
  MemoryPage,
  PageNotLoaded,
  Palette,
  preloadPages,
  RunsPage,
  SchedulePage,
  SettingsPage,
  Shortcuts,
  SpendPage,
  StartPage,
  TokensPage,
  TracesPage,
  WaitingPage,
  WebhooksPage,
} from './lazy-pages.ts';
import { PageLoadFailure } from './page-load-failure.tsx';
import { ChatPage } from './pages/chat/chat-page.tsx';
import { ConversationsPage } from './pages/conversations/conversations-page.tsx';
import { type Shortcut, useShortcuts } from './palette/shortcuts.ts';
import { mayLeave, navigate, usePath, useVisits } from './router.ts';
import { StatusButton } from './status.tsx';
import { setTheme, theme, type Theme } from './theme.ts';
import { useStore } from './data/store.ts';
import { BrandMark, Icon, type IconName } from './ui/icon.tsx';
import { focusHeading } from './ui/keep-focus.ts';
import { PageLink } from './ui/link.tsx';
import { useOverlay } from './ui/overlay.ts';
import { Button, Empty, Failure, IconButton, Page, Skeleton } from './ui/parts.tsx';

interface Section {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly draw: (rest: string | undefined) => ReactNode;
  /** Shown in the navigation to admins only. */
  readonly adminOnly?: true;
  /** Name of its entry in the navigation, when it differs: the entry of several pages with tabs. */
  readonly entry?: string;
  /** Path of the section with the entry that leads to it. */
  readonly under?: string;
}

const laterMs = 4_000;

/** The checklist of a new installation; in the navigation only while it is offered. */
const start: Section = { path: '/start', name: t('Get started'), icon: 'flag', draw: () => <StartPage />, adminOnly: true };

/** Guides, which pages link; not in the navigation. */
const help: Section = { path: '/help', name: t('Help'), icon: 'info', draw: (name) => <HelpPage name={name} /> };

/** Pages by what one does with them. */
const groups: readonly { readonly name: string; readonly sections: readonly Section[] }[] = [
  {
    name: t('Use'),
    sections: [
      { path: '/chat', name: t('Chat'), icon: 'chat', draw: (ref) => <ChatPage reference={ref} /> },
      { path: '/waiting', name: t('Waiting for you'), icon: 'hand', draw: (id) => <WaitingPage wanted={id} /> },
      { path: '/inbox', name: t('Inbox'), icon: 'bell', draw: (id) => <InboxPage chosen={id} /> },
      { path: '/conversations', name: t('Conversations'), icon: 'list', draw: (rest) => <ConversationsPage rest={rest} /> },
      { path: '/files', name: t('Files'), icon: 'file', draw: () => <MediaPage /> },
      { path: '/knowledge', name: t('Knowledge'), icon: 'folder', draw: (rest) => <KnowledgePage rest={rest} /> },
      { path: '/memory', name: t('Memory'), icon: 'memory', draw: () => <MemoryPage /> },
    ],
  },
  {
    name: t('Automate'),
    sections: [
      { path: '/runs', name: t('Runs'), entry: t('Executions'), icon: 'branch', draw: (rest) => <RunsPage rest={rest} /> },
      { path: '/executions', name: t('Executions'), under: '/runs', icon: 'list', draw: () => <ExecutionsPage /> },
      { path: '/graphs', name: t('Graphs'), under: '/runs', icon: 'graph', draw: (rest) => <GraphsPage rest={rest} /> },
      { path: '/schedule', name: t('Schedule'), under: '/runs', icon: 'clock', draw: (rest) => <SchedulePage rest={rest} /> },
      { path: '/channels', name: t('Channels'), icon: 'send', draw: () => <ChannelsPage />, adminOnly: true },
      { path: '/webhooks', name: t('Webhooks'), under: '/runs', icon: 'hook', draw: (rest) => <WebhooksPage rest={rest} />, adminOnly: true },
    ],
  },
  {
    name: t('Observe'),
    sections: [
      { path: '/traces', name: t('Traces'), icon: 'waterfall', draw: (rest) => <TracesPage rest={rest} /> },
      { path: '/events', name: t('Events'), icon: 'pulse', draw: () => <EventsPage /> },
      { path: '/evals', name: t('Evaluations'), icon: 'check', draw: (rest) => <EvalsPage rest={rest} />, adminOnly: true },
      { path: '/spend', name: t('Spend'), icon: 'coin', draw: () => <SpendPage /> },
      // The gateway itself answers at /health.
      { path: '/system', name: t('Health'), icon: 'heart', draw: () => <HealthPage />, adminOnly: true },
      { path: '/logs', name: t('Logs'), icon: 'terminal', draw: () => <LogsPage />, adminOnly: true },
      { path: '/audit', name: t('Audit'), icon: 'shield', draw: () => <AuditPage />, adminOnly: true },
    ],
  },
  {
    name: t('Manage'),
    sections: [
      {
        path: '/agents',
        name: t('Agents & models'),
        icon: 'agent',
        draw: (rest) => (rest === undefined ? <AgentsPage /> : <AgentPage rest={rest} />),
      },
      { path: '/tokens', name: t('Tokens'), icon: 'key', draw: () => <TokensPage /> },
      { path: '/settings', name: t('Settings'), icon: 'sliders', draw: (rest) => <SettingsPage rest={rest} />, adminOnly: true },
      { path: '/explorer', name: t('API explorer'), icon: 'code', draw: (rest) => <ExplorerPage rest={rest} /> },
    ],
  },
];
const sections = groups.flatMap((group) => group.sections);

const pagesForAll = sections.filter(({ adminOnly }) => adminOnly !== true);
const pagesFor = (admin: boolean): readonly Section[] => (admin ? sections : pagesForAll);

/** The frame of all pages: navigation, state of the gateway, and the current page. */
export function Shell() {
  const path = usePath();
  const visits = useVisits();
  const first = useFirstPath();
  const { admin } = useSession();
  const waiting = useWaitingCount();
  const [menuOpen, setMenuOpen] = useState(false);
  const [shortcut, setShortcut] = useState<Shortcut>();
  const main = useRef<HTMLElement>(null);
  const menuButton = useRef<HTMLButtonElement>(null);
  const section = [start, help, ...sections].find((one) => path === one.path || path.startsWith(`${one.path}/`));
  const rest = section === undefined ? undefined : decode(path.slice(section.path.length + 1));

  useEffect(() => {
    if (path === '/' && first !== undefined) navigate(first, { replace: true });
    // Earlier addresses, in bookmarks and messages.
    else if (/^\/approvals(?:\/|$)/.test(path)) navigate(path.replace('/approvals', '/waiting'), { replace: true });
  }, [path, first]);
  useLayoutEffect(() => {
    if (visits > 0) focusHeading();
  }, [visits]);
  useEffect(() => {
    const name = section === undefined ? t('Gatehouse') : t('{name} · Gatehouse', { name: section.name });
    // Shown in the tab while another one is open.
    document.title = waiting === 0 ? name : `(${waiting}) ${name}`;
  }, [section, waiting]);
  useShortcuts(setShortcut);
  useNotices(() => navigate('/waiting'));

  useEffect(() => {
    const leaving = new AbortController();
    const timer = setTimeout(() => void preloadPages(leaving.signal), laterMs);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, []);

  useOverlay(menuOpen, () => {
    setMenuOpen(false);
    menuButton.current?.focus();
  });

  return (
    <div className="shell">
      <a
        className="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        {t('Skip to content')}
      </a>
      <header className="top-bar">
        <IconButton
          ref={menuButton}
          icon={menuOpen ? 'close' : 'menu'}
          label={menuOpen ? t('Close the menu') : t('Open the menu')}
          expanded={menuOpen}
          onClick={() => setMenuOpen(!menuOpen)}
        />
        <BrandMark />
        <span className="brand-name">{section?.name ?? t('Gatehouse')}</span>
        {waiting > 0 && section?.path !== '/waiting' && (
          <PageLink to="/waiting" className="top-waiting" onFollow={() => setMenuOpen(false)}>
            <Icon name="hand" />
            {waiting}
            <span className="visually-hidden"> {t('waiting for you')}</span>
          </PageLink>
        )}
      </header>
      <div className={menuOpen ? 'side open' : 'side'}>
        <div className="brand">
          <BrandMark />
          <span className="brand-name">{t('Gatehouse')}</span>
        </div>
        <Button small look="quiet" icon="search" onClick={() => setShortcut('palette')}>
          {tx('Search {key}', { key: <kbd>Ctrl K</kbd> })}
        </Button>
        <nav aria-label={t('Pages')}>
          <StartLink current={section === start} onFollow={() => setMenuOpen(false)} />
          {groups.map((group) => (
            <NavGroup key={group.name} {...group} current={section} onFollow={() => setMenuOpen(false)} />
          ))}
        </nav>
        <SideFoot />
      </div>
      {menuOpen && <div className="scrim" aria-hidden="true" onClick={() => setMenuOpen(false)} />}
      {shortcut !== undefined && (
        <Suspense fallback={null}>
          {shortcut === 'palette' ? (
            <Palette pages={pagesFor(admin)} onClose={() => setShortcut(undefined)} />
          ) : (
            <Shortcuts onClose={() => setShortcut(undefined)} />
          )}
        </Suspense>
      )}
      {/* The content below the open menu is inert, for the keyboard too. */}
      <main id="content" ref={main} tabIndex={-1} inert={menuOpen}>
        <Guard key={section?.path ?? path}>
          {section === undefined ? (
            path === '/' || path.startsWith('/approvals') ? (
              <LoadingPage />
            ) : (
              <NoSuchPage />
            )
          ) : (
            <Suspense fallback={<LoadingPage />}>{section.draw(rest)}</Suspense>
          )}
        </Guard>
      </main>
    </div>
  );
}

/** Returns the page that opens first: the checklist where only the built-in offline model answers. Undefined until that is known. */
function useFirstPath(): string | undefined {
  const { admin, health } = useSession();
  const { health: known, lost } = useStore(health.state);
  if (!admin || lost) return '/chat';
  if (known === undefined) return undefined;
  return hasNoModel(known) ? start.path : '/chat';
}

function StartLink(props: { readonly current: boolean; readonly onFollow: () => void }) {
  return useOffersFirstRun() ? <OfferedStart {...props} /> : null;
}

/** The link to the checklist, until all of it is done. */
function OfferedStart({ current, onFollow }: { readonly current: boolean; readonly onFollow: () => void }) {
  const { data } = useFirstRun();
  if (data === undefined || data.done.size === stepNames.length) return null;
  return (
    <PageLink to={start.path} className="nav-item" current={current} onFollow={onFollow}>
      <Icon name={start.icon} />
      {start.name}
      <span className="nav-progress">
        {data.done.size}
        <span aria-hidden="true">/{stepNames.length}</span>
        <span className="visually-hidden"> {tx('of {stepNames} done', { stepNames: stepNames.length })}</span>
      </span>
    </PageLink>
  );
}

function NavGroup({
  name,
  sections: listed,
  current,
  onFollow,
}: (typeof groups)[number] & { readonly current: Section | undefined; readonly onFollow: () => void }) {
  const { admin } = useSession();
  return (
    <div role="group" aria-label={name} className="nav-group">
      <span className="nav-group-name" aria-hidden="true">
        {name}
      </span>
      {listed
        .filter(({ adminOnly, under }) => under === undefined && (adminOnly !== true || admin))
        .map((one) => (
          <PageLink key={one.path} to={one.path} className="nav-item" current={one.path === (current?.under ?? current?.path)} onFollow={onFollow}>
            <Icon name={one.icon} />
            {one.entry ?? one.name}
            {one.path === '/waiting' && <PendingCount />}
            {one.path === '/inbox' && <UnreadCount />}
          </PageLink>
        ))}
    </div>
  );
}

/** Returns the number of items waiting for the user, of all kinds. */
function useWaitingCount(): number {
  const { approvals, waiting } = useSession();
  return useStore(approvals.state).total + useStore(waiting.state).items.length;
}

function PendingCount() {
  return <NavCount count={useWaitingCount()} label={t('pending')} />;
}

function UnreadCount() {
  return <NavCount count={useStore(useSession().inbox.state).unread} label={t('unread')} />;
}

function NavCount({ count, label }: { readonly count: number; readonly label: string }) {
  if (count === 0) return null;
  return (
    <span className="nav-count">
      {count}
      <span className="visually-hidden"> {label}</span>
    </span>
  );
}

function LoadingPage() {
  return (
    <div className="page">
      <Skeleton lines={5} />
    </div>
  );
}

function SideFoot() {
  const { logOut } = useSession();
  const chosen = useStore(theme);
  const next: Record<Theme, { readonly to: Theme; readonly icon: IconName; readonly label: string }> = {
    system: { to: 'light', icon: 'screen', label: t('System colours; switch to light') },
    light: { to: 'dark', icon: 'sun', label: t('Light colours; switch to dark') },
    dark: { to: 'system', icon: 'moon', label: t('Dark colours; switch to system') },
  };
  const { to, icon, label } = next[chosen];
  return (
    <div className="side-foot">
      <StatusButton />
      <div className="side-tools">
        <LanguageChoice />
        <IconButton icon={icon} label={label} onClick={() => setTheme(to)} />
        <IconButton icon="leave" label={t('Log out')} onClick={() => mayLeave() && logOut()} />
      </div>
    </div>
  );
}

/** Loads the page again in the selected language, unless something unsaved is kept. */
function LanguageChoice() {
  return (
    <select
      className="language"
      aria-label={t('Language')}
      value={language}
      onChange={({ target }) => {
        if (isLanguage(target.value) && mayLeave()) setLanguage(target.value);
      }}
    >
      {Object.entries(languageNames).map(([tag, name]) => (
        <option key={tag} value={tag} lang={tag}>
          {name}
        </option>
      ))}
    </select>
  );
}

function NoSuchPage() {
  return (
    <Page title={t('No such page')}>
      <Empty title={t('Nothing at this address')}>
        <PageLink to="/chat">{t('Go to the chat')}</PageLink>
      </Empty>
    </Page>
  );
}

function decode(text: string): string | undefined {
  if (text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Keeps an error in one page from breaking the others. */
class Guard extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    if (error instanceof PageNotLoaded) return <PageLoadFailure />;
    return (
      <Page title={t("This page can't be shown")}>
        <Failure error={error} title={t('Something went wrong.')} onRetry={() => location.reload()} />
      </Page>
    );
  }
}
