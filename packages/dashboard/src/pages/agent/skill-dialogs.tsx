import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Failure, Field, Notice, Skeleton } from '../../ui/parts.tsx';
import { readSkillFolder, type SkillFile } from './read-skill-folder.ts';
import type { Skill } from './skills-tab.tsx';
import { NameField, type Scope, ScopeField, SkillForm } from './skill-form.tsx';
import { useVetted } from './use-vetted.ts';

interface DialogProps {
  readonly agentId: string;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}

const emptySkill = '---\nname: \ndescription: \n---\n\n';
/** Timeout for an import, which fetches a repository folder file by file. */
const patienceMs = 120_000;

/** Creates a skill from its SKILL.md, or replaces the SKILL.md of an existing one. */
export function WriteSkillDialog({ agentId, skill, onClose, onDone }: DialogProps & { readonly skill: Skill | undefined }) {
  const { client } = useSession();
  const found = useLoad(['workspace.readFile', 'skill', agentId, skill?.scope, skill?.location], async (signal) => {
    if (skill === undefined) return emptySkill;
    // Shared skills are outside every workspace, and only workspace files can be read remotely.
    if (skill.scope === 'shared') return '';
    return (await client.call('workspace.readFile', { agentId, filePath: skill.location }, { signal })).content;
  });
  return (
    <Dialog title={skill === undefined ? t('New skill') : t('Edit {name}', { name: skill.name })} onClose={onClose} wide>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {found.data === undefined && found.loading && <Skeleton lines={5} />}
      {found.data !== undefined && <WriteSkillForm agentId={agentId} skill={skill} initial={found.data} onClose={onClose} onDone={onDone} />}
    </Dialog>
  );
}

function WriteSkillForm({ agentId, skill, initial, onClose, onDone }: DialogProps & { readonly skill: Skill | undefined; readonly initial: string }) {
  const { client } = useSession();
  const [name, setName] = useState(skill?.name ?? '');
  const [scope, setScope] = useState<Scope>(skill?.scope ?? 'local');
  const [content, setContent] = useState(initial);
  const vetted = useVetted(async (force) => {
    const { verdict } = await client.call(skill === undefined ? 'skills.create' : 'skills.update', { name, scope, agentId, content, force });
    onDone(t('Saved {name} ({verdict}).', { name, verdict }));
  });
  return (
    <SkillForm vetted={vetted} action={skill === undefined ? t('Create') : t('Replace')} onClose={onClose}>
      {skill === undefined && (
        <div className="field-pair">
          <NameField
            name={name}
            onChange={(next) => {
              setName(next);
              vetted.changed();
            }}
          />
          <ScopeField
            scope={scope}
            onChange={(next) => {
              setScope(next);
              vetted.changed();
            }}
          />
        </div>
      )}
      {skill?.scope === 'shared' && <Notice>{t("The text of a shared skill can't be loaded here. Saving replaces it.")}</Notice>}
      <Field label={t('SKILL.md')}>
        {(id) => (
          <textarea
            id={id}
            className="editor"
            rows={14}
            required
            spellCheck={false}
            value={content}
            onChange={(event) => {
              setContent(event.target.value);
              vetted.changed();
            }}
          />
        )}
      </Field>
    </SkillForm>
  );
}

/** Installs a folder from the user's machine. */
export function UploadSkillDialog({ agentId, onClose, onDone }: DialogProps) {
  const { client } = useSession();
  const [name, setName] = useState('');
  const [scope, setScope] = useState<Scope>('local');
  const [files, setFiles] = useState<readonly SkillFile[]>([]);
  const [problem, setProblem] = useState<unknown>();
  const vetted = useVetted(async (force) => {
    const done = await client.call('skills.upload', { name, scope, agentId, files: [...files], force });
    onDone(t('Installed {name} with {files} ({verdict}).', { name: done.name, files: plural(done.fileCount, 'file'), verdict: done.verdict }));
  });
  const choose = (chosen: FileList | null): void => {
    vetted.changed();
    setProblem(undefined);
    readSkillFolder([...(chosen ?? [])]).then((folder) => {
      setFiles(folder.files);
      setName((before) => (before === '' ? folder.name : before));
    }, setProblem);
  };
  return (
    <Dialog title={t('Upload a skill')} onClose={onClose} wide>
      <SkillForm vetted={vetted} action={t('Upload')} disabled={files.length === 0} onClose={onClose}>
        <Field label={t('Folder')} hint={t('Needs a SKILL.md at the top level. Text files only.')}>
          {(id, hint) => (
            <input
              id={id}
              type="file"
              aria-describedby={hint}
              multiple
              ref={(input) => {
                input?.setAttribute('webkitdirectory', '');
              }}
              onChange={(event) => choose(event.target.files)}
            />
          )}
        </Field>
        {problem !== undefined && <Failure error={problem} />}
        {files.length > 0 && (
          <details>
            <summary>{`${plural(files.length, 'file')}, ${bytes(files.reduce((sum, { content }) => sum + content.length, 0))}`}</summary>
            <ul className="mono">
              {files.map(({ path }) => (
                <li key={path}>{path}</li>
              ))}
            </ul>
          </details>
        )}
        <div className="field-pair">
          <NameField
            name={name}
            onChange={(next) => {
              setName(next);
              vetted.changed();
            }}
          />
          <ScopeField
            scope={scope}
            onChange={(next) => {
              setScope(next);
              vetted.changed();
            }}
          />
        </div>
      </SkillForm>
    </Dialog>
  );
}

/** Installs a folder from a public repository. */
export function ImportSkillDialog({ agentId, onClose, onDone }: DialogProps) {
  const { client } = useSession();
  const [url, setUrl] = useState('');
  const [scope, setScope] = useState<Scope>('local');
  const vetted = useVetted(async (force) => {
    const done = await client.call('skills.import', { url: url.trim(), scope, agentId, force }, { timeoutMs: patienceMs });
    onDone(t('Imported {name} with {files} ({verdict}).', { name: done.name, files: plural(done.fileCount, 'file'), verdict: done.verdict }));
  });
  return (
    <Dialog title={t('Import a skill')} onClose={onClose} wide>
      <SkillForm vetted={vetted} action={t('Import')} onClose={onClose}>
        <Field label={t('Folder URL')} hint="https://github.com/owner/repository/tree/branch/path">
          {(id, hint) => (
            <input
              id={id}
              type="url"
              required
              aria-describedby={hint}
              value={url}
              onChange={(event) => {
                setUrl(event.target.value);
                vetted.changed();
              }}
            />
          )}
        </Field>
        <ScopeField
          scope={scope}
          onChange={(next) => {
            setScope(next);
            vetted.changed();
          }}
        />
      </SkillForm>
    </Dialog>
  );
}
