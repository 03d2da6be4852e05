/**
 * The drawn graph with its panel: details of the operation that was clicked, else of the scope, else of the
 * whole graph.
 */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import { dataUrl, fetchPayload, type DataQuery } from '../../api/client';
import { readNumber, readTable } from '../../api/declared';
import { TPU_COMPATIBILITY } from '../../api/tables/tpu_compatibility';
import type { Payload } from '../../api/types';
import { format, plural } from '../../base/units';
import { useLoaded } from '../../state/payload';
import { RichText } from '../../widgets/rich_text';
import { Failed, Loading } from '../../widgets/states';
import { Facts, Section } from '../../widgets/summary';
import type { ToolProps } from '../tool';
import { Drawing } from './drawing';
import { drawnOf, SCALARS, type Drawn, type Item } from './drawn';
import { boxesWith, keyOf, TABLES, validFraction, type Scope } from './model';

type SectionProps = Pick<ToolProps, 'run' | 'hosts' | 'params' | 'setParams'> & {
  graph: string;
  scopes: readonly Scope[];
  chosen: Scope | undefined;
  summary: Payload;
};

type Asked = Pick<SectionProps, 'run' | 'hosts' | 'graph'>;
const NODE = TPU_COMPATIBILITY.node.tables;

function countFacts({
  nValid,
  nInvalid,
  nNotChecked,
}: {
  nValid: number;
  nInvalid: number;
  nNotChecked: number;
}): { name: string; value: string }[] {
  return [
    { name: 'Incompatible', value: nInvalid.toLocaleString('en-US') },
    { name: 'Valid', value: nValid.toLocaleString('en-US') },
    { name: 'Not checked', value: nNotChecked.toLocaleString('en-US') },
  ];
}

/** The attributes and inputs of the graph's definition. */
function Attributes({ node, run, hosts, graph }: { node: number } & Asked): VNode {
  const params = { graph, node: String(node) };
  const query: DataQuery = { tool: 'tpu_compatibility', question: 'node', run, hosts, params };
  const { data, error, retry } = useLoaded(dataUrl(query), '', (abort) => fetchPayload(query, 'json', abort));
  if (error)
    return (
      <Failed
        what="The attributes"
        kind={error.kind}
        message={error.message}
        remedy={error.remedy}
        onRetry={retry}
      />
    );
  if (!data) return <Loading what="Reading the attributes" bones={[14, 14, 14]} />;
  const [attributes, inputs] = [readTable(data, NODE.attributes), readTable(data, NODE.inputs)];
  const device = readTable(data, NODE.node).all()[0]?.device;
  return (
    <>
      {device && <Facts facts={[{ name: 'Device', value: device }]} />}
      <section class="td-attributes" aria-label={attributes.table.title}>
        <h4>Attributes {attributes.note && <small class="muted">{attributes.note}</small>}</h4>
        {attributes.length === 0 && <p class="muted">This operation has no attributes.</p>}
        <dl>
          {attributes.all().map(({ name, kind, value }) => (
            <div key={name}>
              <dt data-tip={kind}>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </section>
      {inputs.length > 0 && (
        <section class="td-attributes" aria-label={inputs.table.title}>
          <h4>Inputs {inputs.note && <small class="muted">{inputs.note}</small>}</h4>
          <ol>
            {inputs.all().map(({ input }, i) => (
              <li key={i}>{input}</li>
            ))}
          </ol>
        </section>
      )}
    </>
  );
}

function Operation({ item, ...asked }: { item: Item } & Asked): VNode {
  const status = item.nInvalid ? 'incompatible' : item.nValid ? 'valid' : 'not checked';
  return (
    <>
      <h3 class="mono">{item.name}</h3>
      <Facts
        facts={[
          { name: 'Operation', value: item.op },
          { name: 'Status', value: status },
          { name: 'Why', value: item.reason },
        ]}
      />
      {item.fix && (
        <p>
          <RichText text={item.fix} />
        </p>
      )}
      {item.node >= 0 && <Attributes node={item.node} {...asked} />}
    </>
  );
}

/** The selected scope, the whole graph at first: how much is compatible, and what prevents the rest. */
function Summary({ scope, summary }: { scope: Scope | undefined; summary: Payload }): VNode {
  const whole = !scope || scope.row === 0;
  const share = scope ? validFraction(scope) : null;
  const fixes = whole ? readTable(summary, TABLES.fixes).all() : [];
  return (
    <>
      <h3 class={whole ? '' : 'mono'}>{whole ? 'The whole graph' : scope.path}</h3>
      <p class="td-share">
        <b>{share === null ? '—' : format(share, 'fraction')}</b>{' '}
        {share === null ? 'nothing was checked' : 'of checked operations are compatible'}
      </p>
      {scope && <Facts facts={countFacts(scope)} />}
      {fixes.length > 0 && (
        <ul class="td-kinds" aria-label="Reasons">
          {fixes.map(({ kind, n_ops, ops }) => (
            <li key={kind}>
              <b>{(n_ops ?? 0).toLocaleString('en-US')}</b> {kind} <code>{ops}</code>
            </li>
          ))}
        </ul>
      )}
      {!fixes.length && whole && <p class="muted">No incompatible operations.</p>}
    </>
  );
}

function Content({
  payload,
  scopes,
  chosen,
  summary,
  params,
  setParams,
  ...asked
}: SectionProps & { payload: Payload }): VNode {
  const drawn: Drawn = useMemo(() => drawnOf(payload), [payload]);
  const item = drawn.items.find(({ kind, name }) => kind === 'operation' && name === params['node']);
  const rest = readNumber(payload, SCALARS.n_rest) ?? 0;
  const cut = readNumber(payload, SCALARS.n_cut) ?? 0;
  const toggle = ({ scope, isOpen }: Item): void => {
    const now = scopes[isOpen ? (scopes[scope]?.parent ?? 0) : scope];
    setParams(
      {
        boxes: boxesWith(params['boxes'], [scope], !isOpen),
        scope: (now && keyOf(now)) || undefined,
        node: undefined,
      },
      'push',
    );
  };
  return (
    <div class="td-body">
      <div>
        <Drawing
          drawn={drawn}
          chosen={item?.id ?? null}
          scope={chosen?.row ?? null}
          onToggle={toggle}
          onChoose={(next) => setParams({ node: next?.name }, 'push')}
        />
        {rest + cut > 0 && (
          <p class="muted td-note">
            {[
              rest && `${plural(rest, 'operation')} of large scopes are grouped as “more”`,
              cut && `${plural(cut, 'edge')} are not drawn`,
            ]
              .filter(Boolean)
              .join('; ')}
            .
          </p>
        )}
      </div>
      <aside class="td-panel" aria-label="Summary">
        {item ? (
          <Operation item={item} {...asked} />
        ) : (
          <Summary scope={chosen ?? scopes[0]} summary={summary} />
        )}
      </aside>
    </div>
  );
}

export function DrawingSection({ run, hosts, graph, ...props }: SectionProps): VNode {
  const { boxes } = props.params;
  const params = boxes ? { graph, boxes } : { graph };
  const query: DataQuery = { tool: 'tpu_compatibility', question: 'drawing', run, hosts, params };
  const { data, error, retry } = useLoaded(dataUrl(query), `${run}\n${graph}`, (abort) =>
    fetchPayload(query, 'json', abort),
  );
  return (
    <Section
      title="Graph"
      tip="Scopes and operations of the graph, with the share of each that can run on a TPU"
      note="click a scope to open or close it; dashed: calls a function"
    >
      {error ? (
        <Failed
          what="The drawing"
          kind={error.kind}
          message={error.message}
          remedy={error.remedy}
          details={error.details}
          onRetry={retry}
        />
      ) : data ? (
        <Content {...props} {...{ run, hosts, graph }} payload={data} />
      ) : (
        <Loading what="Drawing the graph" bones={[520]} />
      )}
    </Section>
  );
}
