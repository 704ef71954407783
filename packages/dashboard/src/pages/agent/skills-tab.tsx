import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';
import { ImportSkillDialog, UploadSkillDialog, WriteSkillDialog } from './skill-dialogs.tsx';

export type Skill = Result<'skills.list'>['skills'][number];

const stateTones: Readonly<Record<Skill['state'], Tone>> = { active: 'good', ineligible: 'neutral', rejected: 'bad' };
const verdictTones: Readonly<Record<Skill['verdict'], Tone>> = { safe: 'good', caution: 'warn', dangerous: 'bad' };

/** The skills of an agent with their vetting results. */
export function SkillsTab({ agentId }: { readonly agentId: string }) {
  const { client } = useSession();
  const listed = useLoad(['skills.list', agentId], (signal) => client.call('skills.list', { agentId }, { signal }));
  const [asked, setAsked] = useState<'create' | 'upload' | 'import' | { readonly edit: Skill } | { readonly remove: Skill }>();
  const [outcome, setOutcome] = useState<string>();
  const close = (): void => setAsked(undefined);
  const done = (text: string): void => {
    setOutcome(text);
    setAsked(undefined);
    listed.reload();
  };
  return (
    <>
      <div className="toolbar">
        <p className="hint">{t('Instructions for specific kinds of work. Each skill is vetted before it is saved.')}</p>
        <span className="grow" />
        <Button onClick={() => setAsked('import')}>{t('Import')}</Button>
        <Button icon="upload" onClick={() => setAsked('upload')}>
          {t('Upload folder')}
        </Button>
        <Button icon="plus" look="primary" onClick={() => setAsked('create')}>
          {t('New skill')}
        </Button>
      </div>
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {listed.error !== undefined && <Failure error={listed.error} onRetry={listed.reload} />}
      {listed.data === undefined && listed.loading && <Skeleton lines={4} />}
      {listed.data?.skills.length === 0 && <Empty title={t('No skills yet')} />}
      <ul className="rows">
        {listed.data?.skills.map((skill) => (
          <li key={`${skill.scope} ${skill.name}`} className="row skill-row">
            <div className="row-main">
              <span className="row-title mono">{skill.name}</span>
              <p className="snippet" dir="auto">
                {skill.description}
              </p>
              {skill.reasons.length > 0 && <p className="hint">{skill.reasons.join('; ')}</p>}
              {skill.findings.length > 0 && <Findings skill={skill} />}
            </div>
            <div className="row-facts">
              <Badge>{skill.scope}</Badge>
              <Badge>{skill.source}</Badge>
              {skill.standing !== 'neutral' && <Badge tone={skill.standing === 'promoted' ? 'good' : 'warn'}>{skill.standing}</Badge>}
              <Badge tone={verdictTones[skill.verdict]}>{skill.verdict}</Badge>
              <Badge tone={stateTones[skill.state]}>{skill.state}</Badge>
              <span>{plural(skill.fileCount, 'file')}</span>
              {skill.uses > 0 && <span>{t('used {times}', { times: plural(skill.uses, 'time') })}</span>}
              {skill.provenance !== undefined && (
                <span
                  title={skill.provenance.url}
                >{`${skill.provenance.tier}${skill.provenance.forced ? t(', confirmed') : ''}, ${ago(skill.provenance.at)}`}</span>
              )}
            </div>
            <div className="actions">
              <Button small icon="edit" label={t('Edit {name}', { name: skill.name })} onClick={() => setAsked({ edit: skill })}>
                {t('Edit')}
              </Button>
              <Button small icon="trash" label={t('Delete {name}', { name: skill.name })} onClick={() => setAsked({ remove: skill })}>
                {t('Delete')}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      {asked === 'create' && <WriteSkillDialog agentId={agentId} skill={undefined} onClose={close} onDone={done} />}
      {asked === 'upload' && <UploadSkillDialog agentId={agentId} onClose={close} onDone={done} />}
      {asked === 'import' && <ImportSkillDialog agentId={agentId} onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'edit' in asked && <WriteSkillDialog agentId={agentId} skill={asked.edit} onClose={close} onDone={done} />}
      {typeof asked === 'object' && 'remove' in asked && (
        <Confirm
          title={t('Delete skill {name}?', { name: asked.remove.name })}
          action={t('Delete')}
          onClose={close}
          run={async () => {
            await client.call('skills.delete', { name: asked.remove.name, scope: asked.remove.scope, agentId });
            done(t('Deleted {name}.', { name: asked.remove.name }));
          }}
        >
          <p>{asked.remove.scope === 'shared' ? t('The skill is deleted for all agents, with all its files.') : t('All its files are deleted.')}</p>
        </Confirm>
      )}
    </>
  );
}

/** Lists the vetting findings by location and rule; never the text itself. */
function Findings({ skill: { findings } }: { readonly skill: Skill }) {
  return (
    <details>
      <summary>{plural(findings.length, 'finding')}</summary>
      <ul className="findings">
        {findings.map(({ file, line, rule, severity, description }) => (
          <li key={`${file} ${line} ${rule}`}>
            <Badge tone={severity === 'CRITICAL' ? 'bad' : 'warn'}>{severity.toLowerCase()}</Badge>{' '}
            <span className="mono">{line > 0 ? `${file}:${line}` : file}</span> <span className="mono">{rule}</span> {description}
          </li>
        ))}
      </ul>
    </details>
  );
}
