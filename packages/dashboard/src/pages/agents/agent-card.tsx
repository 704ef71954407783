import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { PageLink } from '../../ui/link.tsx';
import { Badge, IconButton } from '../../ui/parts.tsx';

export type Agent = Result<'agents.get'>;

const sourceNames: Record<Agent['source'], string> = { file: 'config.yaml', default: 'defaults', stored: 'database' };

/** Shows the most important settings of an agent. */
export function AgentCard({
  agent,
  onChat,
  onEdit,
  onRemove,
  onSwitch,
}: {
  readonly agent: Agent;
  readonly onChat: () => void;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
  readonly onSwitch: () => void;
}) {
  const { agentId, config, source, suspended, isDefault } = agent;
  return (
    <>
      <header>
        <h3>
          <PageLink to={`/agents/${encodeURIComponent(agentId)}`}>{config.name}</PageLink> <span className="mono hint">{agentId}</span>
        </h3>
        <Badge tone={suspended ? 'warn' : 'good'}>{suspended ? t('Suspended') : t('Active')}</Badge>
      </header>
      <dl className="facts">
        <dt>{t('Model')}</dt>
        <dd className="mono">{config.model ?? t('first found')}</dd>
        {config.fallbackModels.length > 0 && (
          <>
            <dt>{t('Fallbacks')}</dt>
            <dd className="mono">{config.fallbackModels.join(', ')}</dd>
          </>
        )}
        <dt>{t('Tools')}</dt>
        <dd>{config.tools.profile}</dd>
        <dt>{t('Steps')}</dt>
        <dd>{tx('up to {maxSteps}', { maxSteps: config.maxSteps })}</dd>
      </dl>
      <footer>
        {isDefault && <Badge tone="accent">{t('Default')}</Badge>}
        <Badge>{sourceNames[source]}</Badge>
        <span className="grow" />
        {!suspended && <IconButton icon="chat" label={t('Chat with {agentId}', { agentId })} onClick={onChat} />}
        <IconButton
          icon={suspended ? 'play' : 'pause'}
          label={suspended ? t('Resume {agentId}', { agentId }) : t('Suspend {agentId}', { agentId })}
          onClick={onSwitch}
        />
        <IconButton icon="edit" label={t('Edit {agentId}', { agentId })} onClick={onEdit} />
        {!isDefault && <IconButton icon="trash" label={t('Delete {agentId}', { agentId })} onClick={onRemove} />}
      </footer>
    </>
  );
}
