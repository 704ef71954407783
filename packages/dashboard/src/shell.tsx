import { Component, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { useSession } from './data/context.ts';
import {
  AgentPage,
  ApprovalsPage,
  AuditPage,
  GraphsPage,
  InboxPage,
  laterParts,
  PartNotLoaded,
  RunsPage,
  SchedulePage,
  WebhooksPage,
} from './later-parts.ts';
import { AgentsPage } from './pages/agents/agents-page.tsx';
import { ChatPage } from './pages/chat/chat-page.tsx';
import { ConversationsPage } from './pages/conversations/conversations-page.tsx';
import { EventsPage } from './pages/events/events-page.tsx';
import { ExplorerPage } from './pages/explorer/explorer-page.tsx';
import { MemoryPage } from './pages/memory/memory-page.tsx';
import { SpendPage } from './pages/spend/spend-page.tsx';
import { TokensPage } from './pages/tokens/tokens-page.tsx';
import { mayLeave, navigate, usePath } from './router.ts';
import { PartFailure } from './part-failure.tsx';
import { StatusButton } from './status.tsx';
import { setTheme, theme, type Theme } from './theme.ts';
import { useStore } from './data/store.ts';
import { BrandMark, Icon, type IconName } from './ui/icon.tsx';
import { PageLink } from './ui/link.tsx';
import { useOverlay } from './ui/overlay.ts';
import { Empty, Failure, IconButton, Page, Skeleton } from './ui/parts.tsx';

interface Section {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly draw: (rest: string | undefined) => ReactNode;
  /** Only administration has it in its navigation. */
  readonly adminOnly?: true;
}

const laterMs = 4_000;

const sections: readonly Section[] = [
  { path: '/chat', name: 'Chat', icon: 'chat', draw: (ref) => <ChatPage reference={ref} /> },
  { path: '/conversations', name: 'Conversations', icon: 'list', draw: (rest) => <ConversationsPage rest={rest} /> },
  { path: '/inbox', name: 'Inbox', icon: 'bell', draw: () => <InboxPage /> },
  { path: '/memory', name: 'Memory', icon: 'memory', draw: () => <MemoryPage /> },
  { path: '/approvals', name: 'Approvals', icon: 'hand', draw: (id) => <ApprovalsPage wanted={id} />, adminOnly: true },
  { path: '/runs', name: 'Runs', icon: 'branch', draw: () => <RunsPage /> },
  { path: '/graphs', name: 'Graphs', icon: 'graph', draw: (rest) => <GraphsPage rest={rest} /> },
  { path: '/schedule', name: 'Schedule', icon: 'clock', draw: (rest) => <SchedulePage rest={rest} /> },
  { path: '/webhooks', name: 'Webhooks', icon: 'hook', draw: () => <WebhooksPage />, adminOnly: true },
  { path: '/spend', name: 'Spend', icon: 'coin', draw: () => <SpendPage /> },
  { path: '/events', name: 'Events', icon: 'pulse', draw: () => <EventsPage /> },
  { path: '/agents', name: 'Agents & models', icon: 'agent', draw: (rest) => (rest === undefined ? <AgentsPage /> : <AgentPage rest={rest} />) },
  { path: '/audit', name: 'Audit', icon: 'shield', draw: () => <AuditPage />, adminOnly: true },
  { path: '/tokens', name: 'Tokens', icon: 'key', draw: () => <TokensPage /> },
  { path: '/explorer', name: 'API explorer', icon: 'code', draw: (method) => <ExplorerPage method={method} /> },
];

/** The frame of all pages: navigation, state of the gateway, and the page of the address. */
export function Shell() {
  const path = usePath();
  const { admin } = useSession();
  const [menuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const menuButton = useRef<HTMLButtonElement>(null);
  const section = sections.find((one) => path === one.path || path.startsWith(`${one.path}/`));
  const rest = section === undefined ? undefined : decode(path.slice(section.path.length + 1));

  useEffect(() => {
    if (path === '/') navigate('/chat', { replace: true });
  }, [path]);
  useEffect(() => {
    document.title = section === undefined ? 'Gatehouse' : `${section.name} · Gatehouse`;
  }, [section]);

  useEffect(() => {
    // A help alone: the page itself tells when it cannot be loaded.
    const timer = setTimeout(() => Object.values(laterParts).forEach((load) => void load().catch(() => undefined)), laterMs);
    return () => clearTimeout(timer);
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
        Skip to the content
      </a>
      <header className="top-bar">
        <IconButton
          ref={menuButton}
          icon={menuOpen ? 'close' : 'menu'}
          label={menuOpen ? 'Close the menu' : 'Open the menu'}
          expanded={menuOpen}
          onClick={() => setMenuOpen(!menuOpen)}
        />
        <BrandMark />
        <span className="brand-name">{section?.name ?? 'Gatehouse'}</span>
      </header>
      <div className={menuOpen ? 'side open' : 'side'}>
        <div className="brand">
          <BrandMark />
          <span className="brand-name">Gatehouse</span>
        </div>
        <nav aria-label="Pages">
          {sections
            .filter(({ adminOnly }) => adminOnly !== true || admin)
            .map((one) => (
              <PageLink key={one.path} to={one.path} className="nav-item" current={one === section} onFollow={() => setMenuOpen(false)}>
                <Icon name={one.icon} />
                {one.name}
                {one.path === '/approvals' && <PendingCount />}
                {one.path === '/inbox' && <UnreadCount />}
              </PageLink>
            ))}
        </nav>
        <SideFoot />
      </div>
      {menuOpen && <div className="scrim" aria-hidden="true" onClick={() => setMenuOpen(false)} />}
      {/* What lies below the open menu is out of reach for the keyboard too. */}
      <main id="content" ref={main} tabIndex={-1} inert={menuOpen}>
        <Guard key={section?.path ?? path}>
          {section === undefined ? path === '/' ? null : <NoSuchPage /> : <Suspense fallback={<LoadingPage />}>{section.draw(rest)}</Suspense>}
        </Guard>
      </main>
    </div>
  );
}

/** How many calls wait for somebody to approve them. */
function PendingCount() {
  return <NavCount count={useStore(useSession().approvals.state).total} words="waiting" />;
}

function UnreadCount() {
  return <NavCount count={useStore(useSession().inbox.state).unread} words="not read yet" />;
}

function NavCount({ count, words }: { readonly count: number; readonly words: string }) {
  if (count === 0) return null;
  return (
    <span className="nav-count">
      {count}
      <span className="visually-hidden"> {words}</span>
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
  const next: Record<Theme, { readonly to: Theme; readonly icon: IconName; readonly words: string }> = {
    system: { to: 'light', icon: 'screen', words: 'Colours as the system says; change to light' },
    light: { to: 'dark', icon: 'sun', words: 'Light colours; change to dark' },
    dark: { to: 'system', icon: 'moon', words: 'Dark colours; change to what the system says' },
  };
  const { to, icon, words } = next[chosen];
  return (
    <div className="side-foot">
      <StatusButton />
      <div className="side-tools">
        <IconButton icon={icon} label={words} onClick={() => setTheme(to)} />
        <IconButton icon="leave" label="Log out" onClick={() => mayLeave() && logOut()} />
      </div>
    </div>
  );
}

function NoSuchPage() {
  return (
    <Page title="No such page">
      <Empty title="There is nothing at this address">
        <PageLink to="/chat">Go to the chat</PageLink>
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

/** Keeps a fault of one page from taking the others along. */
class Guard extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override state: { readonly error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    if (error instanceof PartNotLoaded) return <PartFailure />;
    return (
      <Page title="This page cannot be shown">
        <Failure error={error} title="Something went wrong." onRetry={() => location.reload()} />
      </Page>
    );
  }
}
