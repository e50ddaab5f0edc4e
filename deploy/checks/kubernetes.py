"""Check of Kubernetes manifests: each by Kubernetes' own schema, strictly, and what no schema says.

Reads what `kubectl kustomize` prints from standard input. Prints what is wrong, and ends with 1 then.
"""

import sys

import kubernetes_validate
import yaml

# What Kubernetes refuses or never finds, though each manifest is well-formed by itself.
DEPLOYMENT = 'Deployment'


def faults_of_schema(manifest):
    try:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError as error:
        path = '.'.join(str(part) for part in error.path)
        yield f'{path}: {error.message}'


def is_selected(labels, selector):
    return selector.items() <= labels.items()


def faults_of_names(manifest, deployments):
    """A selector of labels that no pod has, a port or a volume that its container does not name."""
    spec = manifest.get('spec', {})
    kind = manifest['kind']
    selector = spec.get('podSelector' if kind == 'NetworkPolicy' else 'selector')
    if kind == 'Service':
        selector = {'matchLabels': selector}
    if selector:
        chosen = [one for one in deployments if is_selected(labels_of(one), selector['matchLabels'])]
        if not chosen:
            yield f'selects no pod: {selector["matchLabels"]}'
        if kind == DEPLOYMENT and manifest not in chosen:
            yield f'its own pods have other labels: {labels_of(manifest)}'
    if kind == DEPLOYMENT:
        pod = spec['template']['spec']
        volumes = {volume['name'] for volume in pod.get('volumes', [])}
        for container in pod['containers']:
            ports = {port['name'] for port in container['ports']}
            for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
                if probe in container and container[probe]['httpGet']['port'] not in ports:
                    yield f'{probe} names no port of its container'
            for mount in container.get('volumeMounts', []):
                if mount['name'] not in volumes:
                    yield f'no volume {mount["name"]}'


def labels_of(deployment):
    return deployment['spec']['template']['metadata']['labels']


def main():
    manifests = [manifest for manifest in yaml.safe_load_all(sys.stdin) if manifest]
    deployments = [manifest for manifest in manifests if manifest['kind'] == DEPLOYMENT]
    found = 0
    for manifest in manifests:
        name = f'{manifest["kind"]} {manifest["metadata"]["name"]}'
        for fault in [*faults_of_schema(manifest), *faults_of_names(manifest, deployments)]:
            found += 1
            print(f'{name}: {fault}')
    print(f'{len(manifests)} manifests, {found} faults')
    sys.exit(found > 0 or not deployments)


main()
