import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Answers, with Kafka's StandardAuthorizer, the questions that tests/unit/authorization/cases.py writes. */
public class AclDecisions {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StandardAuthorizer authorizer = null;
        Map<Uuid, StandardAcl> acls = new HashMap<>();
        for (String line; (line = in.readLine()) != null; ) {
            String[] part = line.split("\t", -1);
            if (part[0].equals("case")) {
                acls = new HashMap<>();
                Map<String, Object> configs = new HashMap<>();
                configs.put("super.users", part[1]);
                configs.put("allow.everyone.if.no.acl.found", part[2]);
                configs.put("node.id", "1");
                authorizer = new StandardAuthorizer();
                authorizer.configure(configs);
                authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
            } else if (part[0].equals("acl")) {
                acls.put(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode((byte) Integer.parseInt(part[1])), part[3],
                    PatternType.fromCode((byte) Integer.parseInt(part[2])), part[4], part[5],
                    AclOperation.fromCode((byte) Integer.parseInt(part[6])),
                    AclPermissionType.fromCode((byte) Integer.parseInt(part[7]))));
            } else if (part[0].equals("ready")) {
                authorizer.loadSnapshot(acls);
                authorizer.completeInitialLoad();
            } else if (part[0].equals("ask")) {
                ResourcePattern resource = new ResourcePattern(
                    ResourceType.fromCode((byte) Integer.parseInt(part[4])), part[5], PatternType.LITERAL);
                AclOperation operation = AclOperation.fromCode((byte) Integer.parseInt(part[3]));
                List<Action> actions = List.of(new Action(operation, resource, 1, true, true));
                System.out.println(authorizer.authorize(context(part[1], part[2]), actions).get(0));
            } else if (part[0].equals("any")) {
                System.out.println(authorizer.authorizeByResourceType(context(part[1], part[2]),
                    AclOperation.fromCode((byte) Integer.parseInt(part[3])),
                    ResourceType.fromCode((byte) Integer.parseInt(part[4]))));
            } else if (part[0].equals("filter")) {
                AclBindingFilter filter = new AclBindingFilter(
                    new ResourcePatternFilter(ResourceType.fromCode((byte) Integer.parseInt(part[1])),
                        orNull(part[3]), PatternType.fromCode((byte) Integer.parseInt(part[2]))),
                    new AccessControlEntryFilter(orNull(part[4]), orNull(part[5]),
                        AclOperation.fromCode((byte) Integer.parseInt(part[6])),
                        AclPermissionType.fromCode((byte) Integer.parseInt(part[7]))));
                List<String> found = new ArrayList<>();
                authorizer.acls(filter).forEach(each -> found.add(String.join(",",
                    "" + each.pattern().resourceType().code(), "" + each.pattern().patternType().code(),
                    each.pattern().name(), each.entry().principal(), each.entry().host(),
                    "" + each.entry().operation().code(), "" + each.entry().permissionType().code())));
                found.sort(null);
                System.out.println(String.join(" ", found));
            }
        }
    }

    static String orNull(String text) {
        return text.equals("-") ? null : text;
    }

    static AuthorizableRequestContext context(String user, String host) throws Exception {
        InetAddress address = InetAddress.getByName(host);
        return new AuthorizableRequestContext() {
            @Override public String listenerName() { return "CLIENT"; }
            @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
            @Override public KafkaPrincipal principal() { return new KafkaPrincipal("User", user); }
            @Override public InetAddress clientAddress() { return address; }
            @Override public int requestType() { return 0; }
            @Override public int requestVersion() { return 0; }
            @Override public String clientId() { return ""; }
            @Override public int correlationId() { return 0; }
        };
    }
}
