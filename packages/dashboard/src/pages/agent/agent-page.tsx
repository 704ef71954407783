import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { Suspense, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { BrowserDialog } from '../../lazy-pages.ts';
import { navigate } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { AgentEditor } from './agent-editor.tsx';
import { McpTab } from './mcp-tab.tsx';
import { SkillsTab } from './skills-tab.tsx';
import { ToolsTab } from './tools-tab.tsx';
import { WorkspaceTab } from './workspace-tab.tsx';

export type Agent = Result<'agents.get'>;

const tabs = [
  { path: '', name: t('Configuration') },
  { path: 'workspace', name: t('Workspace') },
  { path: 'tools', name: t('Tools') },
  { path: 'skills', name: t('Skills') },
  { path: 'mcp', name: t('MCP servers') },
] as const;

/** One agent at `/agents/<id>`, with its tabs at `/agents/<id>/<tab>`. */
export function AgentPage({ rest }: { readonly rest: string }) {
  const { admin } = useSession();
  const [agentId = '', part = ''] = rest.split('/');
  return admin ? <Whole key={agentId} agentId={agentId} part={part} /> : <AdminOnly title={agentId} />;
}

function Whole({ agentId, part }: { readonly agentId: string; readonly part: string }) {
  const { client, chats } = useSession();
  const found = useLoad(['agents.get', agentId], (signal) => client.call('agents.get', { agentId }, { signal }));
  const agent = found.data;
  const [browsing, setBrowsing] = useState(false);
  const path = `/agents/${encodeURIComponent(agentId)}`;
  return (
    <Page
      title={agent?.config.name ?? agentId}
      lead={
        <span className="facts-line">
          <PageLink to="/agents">{t('All agents')}</PageLink>
          <span className="mono">{agentId}</span>
          {agent !== undefined && <Badge tone={agent.suspended ? 'warn' : 'good'}>{agent.suspended ? t('Suspended') : t('Active')}</Badge>}
          {agent?.isDefault === true && <Badge tone="accent">{t('Default')}</Badge>}
        </span>
      }
      actions={
        agent !== undefined && (
          <>
            <Button icon="screen" onClick={() => setBrowsing(true)}>
              {t('Browser')}
            </Button>
            {!agent.suspended && (
              <Button
                icon="chat"
                onClick={() => {
                  chats.begin(agentId);
                  navigate('/chat');
                }}
              >
                {t('Chat')}
              </Button>
            )}
          </>
        )
      }
    >
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {agent === undefined && found.loading && <Skeleton lines={6} />}
      {agent !== undefined && (
        <>
          <Tabs
            label={t('Agent sections')}
            tabs={tabs.map(({ path: own, name }) => ({ to: own === '' ? path : `${path}/${own}`, name, current: own === part }))}
          />
          {part === '' && <AgentEditor agent={agent} onChanged={found.reload} />}
          {part === 'workspace' && <WorkspaceTab agentId={agentId} />}
          {part === 'tools' && <ToolsTab agent={agent} onChanged={found.reload} />}
          {part === 'skills' && <SkillsTab agentId={agentId} />}
          {part === 'mcp' && <McpTab agentId={agentId} />}
          {!tabs.some(({ path: own }) => own === part) && <Empty title={t('No such tab')} />}
        </>
      )}
      {browsing && (
        <Suspense fallback={null}>
          <BrowserDialog agentId={agentId} onClose={() => setBrowsing(false)} />
        </Suspense>
      )}
    </Page>
  );
}
