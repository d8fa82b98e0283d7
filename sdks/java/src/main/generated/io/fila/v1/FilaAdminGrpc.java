package io.fila.v1;

import static io.grpc.MethodDescriptor.generateFullMethodName;

/**
 */
@io.grpc.stub.annotations.GrpcGenerated
public final class FilaAdminGrpc {

  private FilaAdminGrpc() {}

  public static final java.lang.String SERVICE_NAME = "fila.v1.FilaAdmin";

  // Static method descriptors that strictly reflect the proto.
  private static volatile io.grpc.MethodDescriptor<io.fila.v1.CreateQueueRequest,
      io.fila.v1.CreateQueueResponse> getCreateQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "CreateQueue",
      requestType = io.fila.v1.CreateQueueRequest.class,
      responseType = io.fila.v1.CreateQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.CreateQueueRequest,
      io.fila.v1.CreateQueueResponse> getCreateQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.CreateQueueRequest, io.fila.v1.CreateQueueResponse> getCreateQueueMethod;
    if ((getCreateQueueMethod = FilaAdminGrpc.getCreateQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getCreateQueueMethod = FilaAdminGrpc.getCreateQueueMethod) == null) {
          FilaAdminGrpc.getCreateQueueMethod = getCreateQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.CreateQueueRequest, io.fila.v1.CreateQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "CreateQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.CreateQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.CreateQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("CreateQueue"))
              .build();
        }
      }
    }
    return getCreateQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.UpdateQueueRequest,
      io.fila.v1.UpdateQueueResponse> getUpdateQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "UpdateQueue",
      requestType = io.fila.v1.UpdateQueueRequest.class,
      responseType = io.fila.v1.UpdateQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.UpdateQueueRequest,
      io.fila.v1.UpdateQueueResponse> getUpdateQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.UpdateQueueRequest, io.fila.v1.UpdateQueueResponse> getUpdateQueueMethod;
    if ((getUpdateQueueMethod = FilaAdminGrpc.getUpdateQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getUpdateQueueMethod = FilaAdminGrpc.getUpdateQueueMethod) == null) {
          FilaAdminGrpc.getUpdateQueueMethod = getUpdateQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.UpdateQueueRequest, io.fila.v1.UpdateQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "UpdateQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.UpdateQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.UpdateQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("UpdateQueue"))
              .build();
        }
      }
    }
    return getUpdateQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DeleteQueueRequest,
      io.fila.v1.DeleteQueueResponse> getDeleteQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteQueue",
      requestType = io.fila.v1.DeleteQueueRequest.class,
      responseType = io.fila.v1.DeleteQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DeleteQueueRequest,
      io.fila.v1.DeleteQueueResponse> getDeleteQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DeleteQueueRequest, io.fila.v1.DeleteQueueResponse> getDeleteQueueMethod;
    if ((getDeleteQueueMethod = FilaAdminGrpc.getDeleteQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDeleteQueueMethod = FilaAdminGrpc.getDeleteQueueMethod) == null) {
          FilaAdminGrpc.getDeleteQueueMethod = getDeleteQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DeleteQueueRequest, io.fila.v1.DeleteQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DeleteQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DeleteQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DeleteQueue"))
              .build();
        }
      }
    }
    return getDeleteQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ListQueuesRequest,
      io.fila.v1.ListQueuesResponse> getListQueuesMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListQueues",
      requestType = io.fila.v1.ListQueuesRequest.class,
      responseType = io.fila.v1.ListQueuesResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ListQueuesRequest,
      io.fila.v1.ListQueuesResponse> getListQueuesMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ListQueuesRequest, io.fila.v1.ListQueuesResponse> getListQueuesMethod;
    if ((getListQueuesMethod = FilaAdminGrpc.getListQueuesMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListQueuesMethod = FilaAdminGrpc.getListQueuesMethod) == null) {
          FilaAdminGrpc.getListQueuesMethod = getListQueuesMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ListQueuesRequest, io.fila.v1.ListQueuesResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListQueues"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ListQueuesRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ListQueuesResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListQueues"))
              .build();
        }
      }
    }
    return getListQueuesMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.GetStatsRequest,
      io.fila.v1.GetStatsResponse> getGetStatsMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetStats",
      requestType = io.fila.v1.GetStatsRequest.class,
      responseType = io.fila.v1.GetStatsResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.GetStatsRequest,
      io.fila.v1.GetStatsResponse> getGetStatsMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.GetStatsRequest, io.fila.v1.GetStatsResponse> getGetStatsMethod;
    if ((getGetStatsMethod = FilaAdminGrpc.getGetStatsMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetStatsMethod = FilaAdminGrpc.getGetStatsMethod) == null) {
          FilaAdminGrpc.getGetStatsMethod = getGetStatsMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.GetStatsRequest, io.fila.v1.GetStatsResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetStats"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetStatsRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetStatsResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetStats"))
              .build();
        }
      }
    }
    return getGetStatsMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.SetConfigRequest,
      io.fila.v1.SetConfigResponse> getSetConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "SetConfig",
      requestType = io.fila.v1.SetConfigRequest.class,
      responseType = io.fila.v1.SetConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.SetConfigRequest,
      io.fila.v1.SetConfigResponse> getSetConfigMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.SetConfigRequest, io.fila.v1.SetConfigResponse> getSetConfigMethod;
    if ((getSetConfigMethod = FilaAdminGrpc.getSetConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getSetConfigMethod = FilaAdminGrpc.getSetConfigMethod) == null) {
          FilaAdminGrpc.getSetConfigMethod = getSetConfigMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.SetConfigRequest, io.fila.v1.SetConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "SetConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.SetConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.SetConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("SetConfig"))
              .build();
        }
      }
    }
    return getSetConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.GetConfigRequest,
      io.fila.v1.GetConfigResponse> getGetConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "GetConfig",
      requestType = io.fila.v1.GetConfigRequest.class,
      responseType = io.fila.v1.GetConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.GetConfigRequest,
      io.fila.v1.GetConfigResponse> getGetConfigMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.GetConfigRequest, io.fila.v1.GetConfigResponse> getGetConfigMethod;
    if ((getGetConfigMethod = FilaAdminGrpc.getGetConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getGetConfigMethod = FilaAdminGrpc.getGetConfigMethod) == null) {
          FilaAdminGrpc.getGetConfigMethod = getGetConfigMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.GetConfigRequest, io.fila.v1.GetConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "GetConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.GetConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("GetConfig"))
              .build();
        }
      }
    }
    return getGetConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ListConfigRequest,
      io.fila.v1.ListConfigResponse> getListConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ListConfig",
      requestType = io.fila.v1.ListConfigRequest.class,
      responseType = io.fila.v1.ListConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ListConfigRequest,
      io.fila.v1.ListConfigResponse> getListConfigMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ListConfigRequest, io.fila.v1.ListConfigResponse> getListConfigMethod;
    if ((getListConfigMethod = FilaAdminGrpc.getListConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getListConfigMethod = FilaAdminGrpc.getListConfigMethod) == null) {
          FilaAdminGrpc.getListConfigMethod = getListConfigMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ListConfigRequest, io.fila.v1.ListConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ListConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ListConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ListConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ListConfig"))
              .build();
        }
      }
    }
    return getListConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DeleteConfigRequest,
      io.fila.v1.DeleteConfigResponse> getDeleteConfigMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DeleteConfig",
      requestType = io.fila.v1.DeleteConfigRequest.class,
      responseType = io.fila.v1.DeleteConfigResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DeleteConfigRequest,
      io.fila.v1.DeleteConfigResponse> getDeleteConfigMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DeleteConfigRequest, io.fila.v1.DeleteConfigResponse> getDeleteConfigMethod;
    if ((getDeleteConfigMethod = FilaAdminGrpc.getDeleteConfigMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDeleteConfigMethod = FilaAdminGrpc.getDeleteConfigMethod) == null) {
          FilaAdminGrpc.getDeleteConfigMethod = getDeleteConfigMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DeleteConfigRequest, io.fila.v1.DeleteConfigResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DeleteConfig"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DeleteConfigRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DeleteConfigResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DeleteConfig"))
              .build();
        }
      }
    }
    return getDeleteConfigMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ExplainRequest,
      io.fila.v1.ExplainResponse> getExplainMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Explain",
      requestType = io.fila.v1.ExplainRequest.class,
      responseType = io.fila.v1.ExplainResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ExplainRequest,
      io.fila.v1.ExplainResponse> getExplainMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ExplainRequest, io.fila.v1.ExplainResponse> getExplainMethod;
    if ((getExplainMethod = FilaAdminGrpc.getExplainMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getExplainMethod = FilaAdminGrpc.getExplainMethod) == null) {
          FilaAdminGrpc.getExplainMethod = getExplainMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ExplainRequest, io.fila.v1.ExplainResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Explain"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExplainRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ExplainResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("Explain"))
              .build();
        }
      }
    }
    return getExplainMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DryRunHookRequest,
      io.fila.v1.DryRunHookResponse> getDryRunHookMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DryRunHook",
      requestType = io.fila.v1.DryRunHookRequest.class,
      responseType = io.fila.v1.DryRunHookResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DryRunHookRequest,
      io.fila.v1.DryRunHookResponse> getDryRunHookMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DryRunHookRequest, io.fila.v1.DryRunHookResponse> getDryRunHookMethod;
    if ((getDryRunHookMethod = FilaAdminGrpc.getDryRunHookMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDryRunHookMethod = FilaAdminGrpc.getDryRunHookMethod) == null) {
          FilaAdminGrpc.getDryRunHookMethod = getDryRunHookMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DryRunHookRequest, io.fila.v1.DryRunHookResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DryRunHook"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DryRunHookRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DryRunHookResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DryRunHook"))
              .build();
        }
      }
    }
    return getDryRunHookMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.PauseQueueRequest,
      io.fila.v1.PauseQueueResponse> getPauseQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "PauseQueue",
      requestType = io.fila.v1.PauseQueueRequest.class,
      responseType = io.fila.v1.PauseQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.PauseQueueRequest,
      io.fila.v1.PauseQueueResponse> getPauseQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.PauseQueueRequest, io.fila.v1.PauseQueueResponse> getPauseQueueMethod;
    if ((getPauseQueueMethod = FilaAdminGrpc.getPauseQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPauseQueueMethod = FilaAdminGrpc.getPauseQueueMethod) == null) {
          FilaAdminGrpc.getPauseQueueMethod = getPauseQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.PauseQueueRequest, io.fila.v1.PauseQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "PauseQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PauseQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PauseQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("PauseQueue"))
              .build();
        }
      }
    }
    return getPauseQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ResumeQueueRequest,
      io.fila.v1.ResumeQueueResponse> getResumeQueueMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ResumeQueue",
      requestType = io.fila.v1.ResumeQueueRequest.class,
      responseType = io.fila.v1.ResumeQueueResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ResumeQueueRequest,
      io.fila.v1.ResumeQueueResponse> getResumeQueueMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ResumeQueueRequest, io.fila.v1.ResumeQueueResponse> getResumeQueueMethod;
    if ((getResumeQueueMethod = FilaAdminGrpc.getResumeQueueMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getResumeQueueMethod = FilaAdminGrpc.getResumeQueueMethod) == null) {
          FilaAdminGrpc.getResumeQueueMethod = getResumeQueueMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ResumeQueueRequest, io.fila.v1.ResumeQueueResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ResumeQueue"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ResumeQueueRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ResumeQueueResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ResumeQueue"))
              .build();
        }
      }
    }
    return getResumeQueueMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.PeekRequest,
      io.fila.v1.PeekResponse> getPeekMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Peek",
      requestType = io.fila.v1.PeekRequest.class,
      responseType = io.fila.v1.PeekResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.PeekRequest,
      io.fila.v1.PeekResponse> getPeekMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.PeekRequest, io.fila.v1.PeekResponse> getPeekMethod;
    if ((getPeekMethod = FilaAdminGrpc.getPeekMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPeekMethod = FilaAdminGrpc.getPeekMethod) == null) {
          FilaAdminGrpc.getPeekMethod = getPeekMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.PeekRequest, io.fila.v1.PeekResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Peek"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PeekRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PeekResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("Peek"))
              .build();
        }
      }
    }
    return getPeekMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.RedriveRequest,
      io.fila.v1.RedriveResponse> getRedriveMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Redrive",
      requestType = io.fila.v1.RedriveRequest.class,
      responseType = io.fila.v1.RedriveResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.RedriveRequest,
      io.fila.v1.RedriveResponse> getRedriveMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.RedriveRequest, io.fila.v1.RedriveResponse> getRedriveMethod;
    if ((getRedriveMethod = FilaAdminGrpc.getRedriveMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getRedriveMethod = FilaAdminGrpc.getRedriveMethod) == null) {
          FilaAdminGrpc.getRedriveMethod = getRedriveMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.RedriveRequest, io.fila.v1.RedriveResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Redrive"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.RedriveRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.RedriveResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("Redrive"))
              .build();
        }
      }
    }
    return getRedriveMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.PurgeRequest,
      io.fila.v1.PurgeResponse> getPurgeMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "Purge",
      requestType = io.fila.v1.PurgeRequest.class,
      responseType = io.fila.v1.PurgeResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.PurgeRequest,
      io.fila.v1.PurgeResponse> getPurgeMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.PurgeRequest, io.fila.v1.PurgeResponse> getPurgeMethod;
    if ((getPurgeMethod = FilaAdminGrpc.getPurgeMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getPurgeMethod = FilaAdminGrpc.getPurgeMethod) == null) {
          FilaAdminGrpc.getPurgeMethod = getPurgeMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.PurgeRequest, io.fila.v1.PurgeResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "Purge"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PurgeRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.PurgeResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("Purge"))
              .build();
        }
      }
    }
    return getPurgeMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ReadJournalRequest,
      io.fila.v1.ReadJournalResponse> getReadJournalMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadJournal",
      requestType = io.fila.v1.ReadJournalRequest.class,
      responseType = io.fila.v1.ReadJournalResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
  public static io.grpc.MethodDescriptor<io.fila.v1.ReadJournalRequest,
      io.fila.v1.ReadJournalResponse> getReadJournalMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ReadJournalRequest, io.fila.v1.ReadJournalResponse> getReadJournalMethod;
    if ((getReadJournalMethod = FilaAdminGrpc.getReadJournalMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getReadJournalMethod = FilaAdminGrpc.getReadJournalMethod) == null) {
          FilaAdminGrpc.getReadJournalMethod = getReadJournalMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ReadJournalRequest, io.fila.v1.ReadJournalResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.SERVER_STREAMING)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadJournal"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadJournalRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadJournalResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ReadJournal"))
              .build();
        }
      }
    }
    return getReadJournalMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.ReadAuditRequest,
      io.fila.v1.ReadAuditResponse> getReadAuditMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "ReadAudit",
      requestType = io.fila.v1.ReadAuditRequest.class,
      responseType = io.fila.v1.ReadAuditResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.ReadAuditRequest,
      io.fila.v1.ReadAuditResponse> getReadAuditMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.ReadAuditRequest, io.fila.v1.ReadAuditResponse> getReadAuditMethod;
    if ((getReadAuditMethod = FilaAdminGrpc.getReadAuditMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getReadAuditMethod = FilaAdminGrpc.getReadAuditMethod) == null) {
          FilaAdminGrpc.getReadAuditMethod = getReadAuditMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.ReadAuditRequest, io.fila.v1.ReadAuditResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "ReadAudit"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadAuditRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.ReadAuditResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("ReadAudit"))
              .build();
        }
      }
    }
    return getReadAuditMethod;
  }

  private static volatile io.grpc.MethodDescriptor<io.fila.v1.DescribeServerRequest,
      io.fila.v1.DescribeServerResponse> getDescribeServerMethod;

  @io.grpc.stub.annotations.RpcMethod(
      fullMethodName = SERVICE_NAME + '/' + "DescribeServer",
      requestType = io.fila.v1.DescribeServerRequest.class,
      responseType = io.fila.v1.DescribeServerResponse.class,
      methodType = io.grpc.MethodDescriptor.MethodType.UNARY)
  public static io.grpc.MethodDescriptor<io.fila.v1.DescribeServerRequest,
      io.fila.v1.DescribeServerResponse> getDescribeServerMethod() {
    io.grpc.MethodDescriptor<io.fila.v1.DescribeServerRequest, io.fila.v1.DescribeServerResponse> getDescribeServerMethod;
    if ((getDescribeServerMethod = FilaAdminGrpc.getDescribeServerMethod) == null) {
      synchronized (FilaAdminGrpc.class) {
        if ((getDescribeServerMethod = FilaAdminGrpc.getDescribeServerMethod) == null) {
          FilaAdminGrpc.getDescribeServerMethod = getDescribeServerMethod =
              io.grpc.MethodDescriptor.<io.fila.v1.DescribeServerRequest, io.fila.v1.DescribeServerResponse>newBuilder()
              .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
              .setFullMethodName(generateFullMethodName(SERVICE_NAME, "DescribeServer"))
              .setSampledToLocalTracing(true)
              .setRequestMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeServerRequest.getDefaultInstance()))
              .setResponseMarshaller(io.grpc.protobuf.ProtoUtils.marshaller(
                  io.fila.v1.DescribeServerResponse.getDefaultInstance()))
              .setSchemaDescriptor(new FilaAdminMethodDescriptorSupplier("DescribeServer"))
              .build();
        }
      }
    }
    return getDescribeServerMethod;
  }

  /**
   * Creates a new async stub that supports all call types for the service
   */
  public static FilaAdminStub newStub(io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminStub>() {
        @java.lang.Override
        public FilaAdminStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminStub(channel, callOptions);
        }
      };
    return FilaAdminStub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports all types of calls on the service
   */
  public static FilaAdminBlockingV2Stub newBlockingV2Stub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingV2Stub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingV2Stub>() {
        @java.lang.Override
        public FilaAdminBlockingV2Stub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminBlockingV2Stub(channel, callOptions);
        }
      };
    return FilaAdminBlockingV2Stub.newStub(factory, channel);
  }

  /**
   * Creates a new blocking-style stub that supports unary and streaming output calls on the service
   */
  public static FilaAdminBlockingStub newBlockingStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminBlockingStub>() {
        @java.lang.Override
        public FilaAdminBlockingStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminBlockingStub(channel, callOptions);
        }
      };
    return FilaAdminBlockingStub.newStub(factory, channel);
  }

  /**
   * Creates a new ListenableFuture-style stub that supports unary calls on the service
   */
  public static FilaAdminFutureStub newFutureStub(
      io.grpc.Channel channel) {
    io.grpc.stub.AbstractStub.StubFactory<FilaAdminFutureStub> factory =
      new io.grpc.stub.AbstractStub.StubFactory<FilaAdminFutureStub>() {
        @java.lang.Override
        public FilaAdminFutureStub newStub(io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
          return new FilaAdminFutureStub(channel, callOptions);
        }
      };
    return FilaAdminFutureStub.newStub(factory, channel);
  }

  /**
   */
  public interface AsyncService {

    /**
     * <pre>
     * Creates a queue and its dead-letter queue, `&lt;name&gt;.dlq`.
     * </pre>
     */
    default void createQueue(io.fila.v1.CreateQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.CreateQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getCreateQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Changes settings of an existing queue. The change applies to what happens from then on.
     * </pre>
     */
    default void updateQueue(io.fila.v1.UpdateQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.UpdateQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getUpdateQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes a queue, its dead-letter queue and all their messages.
     * </pre>
     */
    default void deleteQueue(io.fila.v1.DeleteQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DeleteQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists queues with their figures, ordered by name, a page at a time.
     * </pre>
     */
    default void listQueues(io.fila.v1.ListQueuesRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ListQueuesResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListQueuesMethod(), responseObserver);
    }

    /**
     */
    default void getStats(io.fila.v1.GetStatsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetStatsResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetStatsMethod(), responseObserver);
    }

    /**
     */
    default void setConfig(io.fila.v1.SetConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.SetConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getSetConfigMethod(), responseObserver);
    }

    /**
     */
    default void getConfig(io.fila.v1.GetConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getGetConfigMethod(), responseObserver);
    }

    /**
     * <pre>
     * Lists entries, ordered by key, a page at a time.
     * </pre>
     */
    default void listConfig(io.fila.v1.ListConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ListConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getListConfigMethod(), responseObserver);
    }

    /**
     */
    default void deleteConfig(io.fila.v1.DeleteConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DeleteConfigResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDeleteConfigMethod(), responseObserver);
    }

    /**
     * <pre>
     * Explains why a message is still waiting, and when it will be delivered. Changes nothing.
     * </pre>
     */
    default void explain(io.fila.v1.ExplainRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExplainResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getExplainMethod(), responseObserver);
    }

    /**
     * <pre>
     * Runs a script on messages and returns what it would decide. Changes nothing.
     * </pre>
     */
    default void dryRunHook(io.fila.v1.DryRunHookRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DryRunHookResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDryRunHookMethod(), responseObserver);
    }

    /**
     * <pre>
     * Stops delivery from a queue until it is resumed, also over restarts. Enqueueing, settling and leases go on.
     * </pre>
     */
    default void pauseQueue(io.fila.v1.PauseQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PauseQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPauseQueueMethod(), responseObserver);
    }

    /**
     */
    default void resumeQueue(io.fila.v1.ResumeQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ResumeQueueResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getResumeQueueMethod(), responseObserver);
    }

    /**
     * <pre>
     * Looks at messages of any queue without consuming them, a page at a time.
     * </pre>
     */
    default void peek(io.fila.v1.PeekRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PeekResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPeekMethod(), responseObserver);
    }

    /**
     * <pre>
     * Moves messages of a dead-letter queue back to the queue they came from, oldest first. Leased ones stay.
     * </pre>
     */
    default void redrive(io.fila.v1.RedriveRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.RedriveResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getRedriveMethod(), responseObserver);
    }

    /**
     * <pre>
     * Removes messages for good, oldest first. Leased ones stay.
     * </pre>
     */
    default void purge(io.fila.v1.PurgeRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PurgeResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getPurgeMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads entries of the journal, in order. The first response comes at once.
     * </pre>
     */
    default void readJournal(io.fila.v1.ReadJournalRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadJournalResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadJournalMethod(), responseObserver);
    }

    /**
     * <pre>
     * Reads entries of the audit, in order, a page at a time.
     * </pre>
     */
    default void readAudit(io.fila.v1.ReadAuditRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadAuditResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getReadAuditMethod(), responseObserver);
    }

    /**
     * <pre>
     * Describes how the server is set up: what it listens on, TLS, the store. Holds no secret.
     * </pre>
     */
    default void describeServer(io.fila.v1.DescribeServerRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeServerResponse> responseObserver) {
      io.grpc.stub.ServerCalls.asyncUnimplementedUnaryCall(getDescribeServerMethod(), responseObserver);
    }
  }

  /**
   * Base class for the server implementation of the service FilaAdmin.
   */
  public static abstract class FilaAdminImplBase
      implements io.grpc.BindableService, AsyncService {

    @java.lang.Override public final io.grpc.ServerServiceDefinition bindService() {
      return FilaAdminGrpc.bindService(this);
    }
  }

  /**
   * A stub to allow clients to do asynchronous rpc calls to service FilaAdmin.
   */
  public static final class FilaAdminStub
      extends io.grpc.stub.AbstractAsyncStub<FilaAdminStub> {
    private FilaAdminStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a queue and its dead-letter queue, `&lt;name&gt;.dlq`.
     * </pre>
     */
    public void createQueue(io.fila.v1.CreateQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.CreateQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getCreateQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Changes settings of an existing queue. The change applies to what happens from then on.
     * </pre>
     */
    public void updateQueue(io.fila.v1.UpdateQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.UpdateQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getUpdateQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes a queue, its dead-letter queue and all their messages.
     * </pre>
     */
    public void deleteQueue(io.fila.v1.DeleteQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DeleteQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists queues with their figures, ordered by name, a page at a time.
     * </pre>
     */
    public void listQueues(io.fila.v1.ListQueuesRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ListQueuesResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListQueuesMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     */
    public void getStats(io.fila.v1.GetStatsRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetStatsResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetStatsMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     */
    public void setConfig(io.fila.v1.SetConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.SetConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getSetConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     */
    public void getConfig(io.fila.v1.GetConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.GetConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getGetConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Lists entries, ordered by key, a page at a time.
     * </pre>
     */
    public void listConfig(io.fila.v1.ListConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ListConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getListConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     */
    public void deleteConfig(io.fila.v1.DeleteConfigRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DeleteConfigResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDeleteConfigMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Explains why a message is still waiting, and when it will be delivered. Changes nothing.
     * </pre>
     */
    public void explain(io.fila.v1.ExplainRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ExplainResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getExplainMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Runs a script on messages and returns what it would decide. Changes nothing.
     * </pre>
     */
    public void dryRunHook(io.fila.v1.DryRunHookRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DryRunHookResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDryRunHookMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Stops delivery from a queue until it is resumed, also over restarts. Enqueueing, settling and leases go on.
     * </pre>
     */
    public void pauseQueue(io.fila.v1.PauseQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PauseQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPauseQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     */
    public void resumeQueue(io.fila.v1.ResumeQueueRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ResumeQueueResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getResumeQueueMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Looks at messages of any queue without consuming them, a page at a time.
     * </pre>
     */
    public void peek(io.fila.v1.PeekRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PeekResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPeekMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Moves messages of a dead-letter queue back to the queue they came from, oldest first. Leased ones stay.
     * </pre>
     */
    public void redrive(io.fila.v1.RedriveRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.RedriveResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getRedriveMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Removes messages for good, oldest first. Leased ones stay.
     * </pre>
     */
    public void purge(io.fila.v1.PurgeRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.PurgeResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getPurgeMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads entries of the journal, in order. The first response comes at once.
     * </pre>
     */
    public void readJournal(io.fila.v1.ReadJournalRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadJournalResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncServerStreamingCall(
          getChannel().newCall(getReadJournalMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Reads entries of the audit, in order, a page at a time.
     * </pre>
     */
    public void readAudit(io.fila.v1.ReadAuditRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.ReadAuditResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getReadAuditMethod(), getCallOptions()), request, responseObserver);
    }

    /**
     * <pre>
     * Describes how the server is set up: what it listens on, TLS, the store. Holds no secret.
     * </pre>
     */
    public void describeServer(io.fila.v1.DescribeServerRequest request,
        io.grpc.stub.StreamObserver<io.fila.v1.DescribeServerResponse> responseObserver) {
      io.grpc.stub.ClientCalls.asyncUnaryCall(
          getChannel().newCall(getDescribeServerMethod(), getCallOptions()), request, responseObserver);
    }
  }

  /**
   * A stub to allow clients to do synchronous rpc calls to service FilaAdmin.
   */
  public static final class FilaAdminBlockingV2Stub
      extends io.grpc.stub.AbstractBlockingStub<FilaAdminBlockingV2Stub> {
    private FilaAdminBlockingV2Stub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminBlockingV2Stub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminBlockingV2Stub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a queue and its dead-letter queue, `&lt;name&gt;.dlq`.
     * </pre>
     */
    public io.fila.v1.CreateQueueResponse createQueue(io.fila.v1.CreateQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getCreateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes settings of an existing queue. The change applies to what happens from then on.
     * </pre>
     */
    public io.fila.v1.UpdateQueueResponse updateQueue(io.fila.v1.UpdateQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getUpdateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes a queue, its dead-letter queue and all their messages.
     * </pre>
     */
    public io.fila.v1.DeleteQueueResponse deleteQueue(io.fila.v1.DeleteQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists queues with their figures, ordered by name, a page at a time.
     * </pre>
     */
    public io.fila.v1.ListQueuesResponse listQueues(io.fila.v1.ListQueuesRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListQueuesMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.GetStatsResponse getStats(io.fila.v1.GetStatsRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetStatsMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.SetConfigResponse setConfig(io.fila.v1.SetConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getSetConfigMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.GetConfigResponse getConfig(io.fila.v1.GetConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getGetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists entries, ordered by key, a page at a time.
     * </pre>
     */
    public io.fila.v1.ListConfigResponse listConfig(io.fila.v1.ListConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getListConfigMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.DeleteConfigResponse deleteConfig(io.fila.v1.DeleteConfigRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDeleteConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Explains why a message is still waiting, and when it will be delivered. Changes nothing.
     * </pre>
     */
    public io.fila.v1.ExplainResponse explain(io.fila.v1.ExplainRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getExplainMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs a script on messages and returns what it would decide. Changes nothing.
     * </pre>
     */
    public io.fila.v1.DryRunHookResponse dryRunHook(io.fila.v1.DryRunHookRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDryRunHookMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stops delivery from a queue until it is resumed, also over restarts. Enqueueing, settling and leases go on.
     * </pre>
     */
    public io.fila.v1.PauseQueueResponse pauseQueue(io.fila.v1.PauseQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPauseQueueMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.ResumeQueueResponse resumeQueue(io.fila.v1.ResumeQueueRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getResumeQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Looks at messages of any queue without consuming them, a page at a time.
     * </pre>
     */
    public io.fila.v1.PeekResponse peek(io.fila.v1.PeekRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPeekMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Moves messages of a dead-letter queue back to the queue they came from, oldest first. Leased ones stay.
     * </pre>
     */
    public io.fila.v1.RedriveResponse redrive(io.fila.v1.RedriveRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getRedriveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes messages for good, oldest first. Leased ones stay.
     * </pre>
     */
    public io.fila.v1.PurgeResponse purge(io.fila.v1.PurgeRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getPurgeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads entries of the journal, in order. The first response comes at once.
     * </pre>
     */
    @io.grpc.ExperimentalApi("https://github.com/grpc/grpc-java/issues/10918")
    public io.grpc.stub.BlockingClientCall<?, io.fila.v1.ReadJournalResponse>
        readJournal(io.fila.v1.ReadJournalRequest request) {
      return io.grpc.stub.ClientCalls.blockingV2ServerStreamingCall(
          getChannel(), getReadJournalMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads entries of the audit, in order, a page at a time.
     * </pre>
     */
    public io.fila.v1.ReadAuditResponse readAudit(io.fila.v1.ReadAuditRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getReadAuditMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes how the server is set up: what it listens on, TLS, the store. Holds no secret.
     * </pre>
     */
    public io.fila.v1.DescribeServerResponse describeServer(io.fila.v1.DescribeServerRequest request) throws io.grpc.StatusException {
      return io.grpc.stub.ClientCalls.blockingV2UnaryCall(
          getChannel(), getDescribeServerMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do limited synchronous rpc calls to service FilaAdmin.
   */
  public static final class FilaAdminBlockingStub
      extends io.grpc.stub.AbstractBlockingStub<FilaAdminBlockingStub> {
    private FilaAdminBlockingStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminBlockingStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminBlockingStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a queue and its dead-letter queue, `&lt;name&gt;.dlq`.
     * </pre>
     */
    public io.fila.v1.CreateQueueResponse createQueue(io.fila.v1.CreateQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getCreateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Changes settings of an existing queue. The change applies to what happens from then on.
     * </pre>
     */
    public io.fila.v1.UpdateQueueResponse updateQueue(io.fila.v1.UpdateQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getUpdateQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes a queue, its dead-letter queue and all their messages.
     * </pre>
     */
    public io.fila.v1.DeleteQueueResponse deleteQueue(io.fila.v1.DeleteQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists queues with their figures, ordered by name, a page at a time.
     * </pre>
     */
    public io.fila.v1.ListQueuesResponse listQueues(io.fila.v1.ListQueuesRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListQueuesMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.GetStatsResponse getStats(io.fila.v1.GetStatsRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetStatsMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.SetConfigResponse setConfig(io.fila.v1.SetConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getSetConfigMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.GetConfigResponse getConfig(io.fila.v1.GetConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getGetConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Lists entries, ordered by key, a page at a time.
     * </pre>
     */
    public io.fila.v1.ListConfigResponse listConfig(io.fila.v1.ListConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getListConfigMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.DeleteConfigResponse deleteConfig(io.fila.v1.DeleteConfigRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDeleteConfigMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Explains why a message is still waiting, and when it will be delivered. Changes nothing.
     * </pre>
     */
    public io.fila.v1.ExplainResponse explain(io.fila.v1.ExplainRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getExplainMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Runs a script on messages and returns what it would decide. Changes nothing.
     * </pre>
     */
    public io.fila.v1.DryRunHookResponse dryRunHook(io.fila.v1.DryRunHookRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDryRunHookMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Stops delivery from a queue until it is resumed, also over restarts. Enqueueing, settling and leases go on.
     * </pre>
     */
    public io.fila.v1.PauseQueueResponse pauseQueue(io.fila.v1.PauseQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPauseQueueMethod(), getCallOptions(), request);
    }

    /**
     */
    public io.fila.v1.ResumeQueueResponse resumeQueue(io.fila.v1.ResumeQueueRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getResumeQueueMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Looks at messages of any queue without consuming them, a page at a time.
     * </pre>
     */
    public io.fila.v1.PeekResponse peek(io.fila.v1.PeekRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPeekMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Moves messages of a dead-letter queue back to the queue they came from, oldest first. Leased ones stay.
     * </pre>
     */
    public io.fila.v1.RedriveResponse redrive(io.fila.v1.RedriveRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getRedriveMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Removes messages for good, oldest first. Leased ones stay.
     * </pre>
     */
    public io.fila.v1.PurgeResponse purge(io.fila.v1.PurgeRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getPurgeMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads entries of the journal, in order. The first response comes at once.
     * </pre>
     */
    public java.util.Iterator<io.fila.v1.ReadJournalResponse> readJournal(
        io.fila.v1.ReadJournalRequest request) {
      return io.grpc.stub.ClientCalls.blockingServerStreamingCall(
          getChannel(), getReadJournalMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Reads entries of the audit, in order, a page at a time.
     * </pre>
     */
    public io.fila.v1.ReadAuditResponse readAudit(io.fila.v1.ReadAuditRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getReadAuditMethod(), getCallOptions(), request);
    }

    /**
     * <pre>
     * Describes how the server is set up: what it listens on, TLS, the store. Holds no secret.
     * </pre>
     */
    public io.fila.v1.DescribeServerResponse describeServer(io.fila.v1.DescribeServerRequest request) {
      return io.grpc.stub.ClientCalls.blockingUnaryCall(
          getChannel(), getDescribeServerMethod(), getCallOptions(), request);
    }
  }

  /**
   * A stub to allow clients to do ListenableFuture-style rpc calls to service FilaAdmin.
   */
  public static final class FilaAdminFutureStub
      extends io.grpc.stub.AbstractFutureStub<FilaAdminFutureStub> {
    private FilaAdminFutureStub(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      super(channel, callOptions);
    }

    @java.lang.Override
    protected FilaAdminFutureStub build(
        io.grpc.Channel channel, io.grpc.CallOptions callOptions) {
      return new FilaAdminFutureStub(channel, callOptions);
    }

    /**
     * <pre>
     * Creates a queue and its dead-letter queue, `&lt;name&gt;.dlq`.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.CreateQueueResponse> createQueue(
        io.fila.v1.CreateQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getCreateQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Changes settings of an existing queue. The change applies to what happens from then on.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.UpdateQueueResponse> updateQueue(
        io.fila.v1.UpdateQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getUpdateQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes a queue, its dead-letter queue and all their messages.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DeleteQueueResponse> deleteQueue(
        io.fila.v1.DeleteQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists queues with their figures, ordered by name, a page at a time.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ListQueuesResponse> listQueues(
        io.fila.v1.ListQueuesRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListQueuesMethod(), getCallOptions()), request);
    }

    /**
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.GetStatsResponse> getStats(
        io.fila.v1.GetStatsRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetStatsMethod(), getCallOptions()), request);
    }

    /**
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.SetConfigResponse> setConfig(
        io.fila.v1.SetConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getSetConfigMethod(), getCallOptions()), request);
    }

    /**
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.GetConfigResponse> getConfig(
        io.fila.v1.GetConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getGetConfigMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Lists entries, ordered by key, a page at a time.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ListConfigResponse> listConfig(
        io.fila.v1.ListConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getListConfigMethod(), getCallOptions()), request);
    }

    /**
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DeleteConfigResponse> deleteConfig(
        io.fila.v1.DeleteConfigRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDeleteConfigMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Explains why a message is still waiting, and when it will be delivered. Changes nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ExplainResponse> explain(
        io.fila.v1.ExplainRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getExplainMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Runs a script on messages and returns what it would decide. Changes nothing.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DryRunHookResponse> dryRunHook(
        io.fila.v1.DryRunHookRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDryRunHookMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Stops delivery from a queue until it is resumed, also over restarts. Enqueueing, settling and leases go on.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.PauseQueueResponse> pauseQueue(
        io.fila.v1.PauseQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPauseQueueMethod(), getCallOptions()), request);
    }

    /**
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ResumeQueueResponse> resumeQueue(
        io.fila.v1.ResumeQueueRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getResumeQueueMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Looks at messages of any queue without consuming them, a page at a time.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.PeekResponse> peek(
        io.fila.v1.PeekRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPeekMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Moves messages of a dead-letter queue back to the queue they came from, oldest first. Leased ones stay.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.RedriveResponse> redrive(
        io.fila.v1.RedriveRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getRedriveMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Removes messages for good, oldest first. Leased ones stay.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.PurgeResponse> purge(
        io.fila.v1.PurgeRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getPurgeMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Reads entries of the audit, in order, a page at a time.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.ReadAuditResponse> readAudit(
        io.fila.v1.ReadAuditRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getReadAuditMethod(), getCallOptions()), request);
    }

    /**
     * <pre>
     * Describes how the server is set up: what it listens on, TLS, the store. Holds no secret.
     * </pre>
     */
    public com.google.common.util.concurrent.ListenableFuture<io.fila.v1.DescribeServerResponse> describeServer(
        io.fila.v1.DescribeServerRequest request) {
      return io.grpc.stub.ClientCalls.futureUnaryCall(
          getChannel().newCall(getDescribeServerMethod(), getCallOptions()), request);
    }
  }

  private static final int METHODID_CREATE_QUEUE = 0;
  private static final int METHODID_UPDATE_QUEUE = 1;
  private static final int METHODID_DELETE_QUEUE = 2;
  private static final int METHODID_LIST_QUEUES = 3;
  private static final int METHODID_GET_STATS = 4;
  private static final int METHODID_SET_CONFIG = 5;
  private static final int METHODID_GET_CONFIG = 6;
  private static final int METHODID_LIST_CONFIG = 7;
  private static final int METHODID_DELETE_CONFIG = 8;
  private static final int METHODID_EXPLAIN = 9;
  private static final int METHODID_DRY_RUN_HOOK = 10;
  private static final int METHODID_PAUSE_QUEUE = 11;
  private static final int METHODID_RESUME_QUEUE = 12;
  private static final int METHODID_PEEK = 13;
  private static final int METHODID_REDRIVE = 14;
  private static final int METHODID_PURGE = 15;
  private static final int METHODID_READ_JOURNAL = 16;
  private static final int METHODID_READ_AUDIT = 17;
  private static final int METHODID_DESCRIBE_SERVER = 18;

  private static final class MethodHandlers<Req, Resp> implements
      io.grpc.stub.ServerCalls.UnaryMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ServerStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.ClientStreamingMethod<Req, Resp>,
      io.grpc.stub.ServerCalls.BidiStreamingMethod<Req, Resp> {
    private final AsyncService serviceImpl;
    private final int methodId;

    MethodHandlers(AsyncService serviceImpl, int methodId) {
      this.serviceImpl = serviceImpl;
      this.methodId = methodId;
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public void invoke(Req request, io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        case METHODID_CREATE_QUEUE:
          serviceImpl.createQueue((io.fila.v1.CreateQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.CreateQueueResponse>) responseObserver);
          break;
        case METHODID_UPDATE_QUEUE:
          serviceImpl.updateQueue((io.fila.v1.UpdateQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.UpdateQueueResponse>) responseObserver);
          break;
        case METHODID_DELETE_QUEUE:
          serviceImpl.deleteQueue((io.fila.v1.DeleteQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DeleteQueueResponse>) responseObserver);
          break;
        case METHODID_LIST_QUEUES:
          serviceImpl.listQueues((io.fila.v1.ListQueuesRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ListQueuesResponse>) responseObserver);
          break;
        case METHODID_GET_STATS:
          serviceImpl.getStats((io.fila.v1.GetStatsRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.GetStatsResponse>) responseObserver);
          break;
        case METHODID_SET_CONFIG:
          serviceImpl.setConfig((io.fila.v1.SetConfigRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.SetConfigResponse>) responseObserver);
          break;
        case METHODID_GET_CONFIG:
          serviceImpl.getConfig((io.fila.v1.GetConfigRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.GetConfigResponse>) responseObserver);
          break;
        case METHODID_LIST_CONFIG:
          serviceImpl.listConfig((io.fila.v1.ListConfigRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ListConfigResponse>) responseObserver);
          break;
        case METHODID_DELETE_CONFIG:
          serviceImpl.deleteConfig((io.fila.v1.DeleteConfigRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DeleteConfigResponse>) responseObserver);
          break;
        case METHODID_EXPLAIN:
          serviceImpl.explain((io.fila.v1.ExplainRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ExplainResponse>) responseObserver);
          break;
        case METHODID_DRY_RUN_HOOK:
          serviceImpl.dryRunHook((io.fila.v1.DryRunHookRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DryRunHookResponse>) responseObserver);
          break;
        case METHODID_PAUSE_QUEUE:
          serviceImpl.pauseQueue((io.fila.v1.PauseQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.PauseQueueResponse>) responseObserver);
          break;
        case METHODID_RESUME_QUEUE:
          serviceImpl.resumeQueue((io.fila.v1.ResumeQueueRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ResumeQueueResponse>) responseObserver);
          break;
        case METHODID_PEEK:
          serviceImpl.peek((io.fila.v1.PeekRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.PeekResponse>) responseObserver);
          break;
        case METHODID_REDRIVE:
          serviceImpl.redrive((io.fila.v1.RedriveRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.RedriveResponse>) responseObserver);
          break;
        case METHODID_PURGE:
          serviceImpl.purge((io.fila.v1.PurgeRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.PurgeResponse>) responseObserver);
          break;
        case METHODID_READ_JOURNAL:
          serviceImpl.readJournal((io.fila.v1.ReadJournalRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ReadJournalResponse>) responseObserver);
          break;
        case METHODID_READ_AUDIT:
          serviceImpl.readAudit((io.fila.v1.ReadAuditRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.ReadAuditResponse>) responseObserver);
          break;
        case METHODID_DESCRIBE_SERVER:
          serviceImpl.describeServer((io.fila.v1.DescribeServerRequest) request,
              (io.grpc.stub.StreamObserver<io.fila.v1.DescribeServerResponse>) responseObserver);
          break;
        default:
          throw new AssertionError();
      }
    }

    @java.lang.Override
    @java.lang.SuppressWarnings("unchecked")
    public io.grpc.stub.StreamObserver<Req> invoke(
        io.grpc.stub.StreamObserver<Resp> responseObserver) {
      switch (methodId) {
        default:
          throw new AssertionError();
      }
    }
  }

  public static final io.grpc.ServerServiceDefinition bindService(AsyncService service) {
    return io.grpc.ServerServiceDefinition.builder(getServiceDescriptor())
        .addMethod(
          getCreateQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.CreateQueueRequest,
              io.fila.v1.CreateQueueResponse>(
                service, METHODID_CREATE_QUEUE)))
        .addMethod(
          getUpdateQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.UpdateQueueRequest,
              io.fila.v1.UpdateQueueResponse>(
                service, METHODID_UPDATE_QUEUE)))
        .addMethod(
          getDeleteQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DeleteQueueRequest,
              io.fila.v1.DeleteQueueResponse>(
                service, METHODID_DELETE_QUEUE)))
        .addMethod(
          getListQueuesMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ListQueuesRequest,
              io.fila.v1.ListQueuesResponse>(
                service, METHODID_LIST_QUEUES)))
        .addMethod(
          getGetStatsMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.GetStatsRequest,
              io.fila.v1.GetStatsResponse>(
                service, METHODID_GET_STATS)))
        .addMethod(
          getSetConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.SetConfigRequest,
              io.fila.v1.SetConfigResponse>(
                service, METHODID_SET_CONFIG)))
        .addMethod(
          getGetConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.GetConfigRequest,
              io.fila.v1.GetConfigResponse>(
                service, METHODID_GET_CONFIG)))
        .addMethod(
          getListConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ListConfigRequest,
              io.fila.v1.ListConfigResponse>(
                service, METHODID_LIST_CONFIG)))
        .addMethod(
          getDeleteConfigMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DeleteConfigRequest,
              io.fila.v1.DeleteConfigResponse>(
                service, METHODID_DELETE_CONFIG)))
        .addMethod(
          getExplainMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ExplainRequest,
              io.fila.v1.ExplainResponse>(
                service, METHODID_EXPLAIN)))
        .addMethod(
          getDryRunHookMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DryRunHookRequest,
              io.fila.v1.DryRunHookResponse>(
                service, METHODID_DRY_RUN_HOOK)))
        .addMethod(
          getPauseQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.PauseQueueRequest,
              io.fila.v1.PauseQueueResponse>(
                service, METHODID_PAUSE_QUEUE)))
        .addMethod(
          getResumeQueueMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ResumeQueueRequest,
              io.fila.v1.ResumeQueueResponse>(
                service, METHODID_RESUME_QUEUE)))
        .addMethod(
          getPeekMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.PeekRequest,
              io.fila.v1.PeekResponse>(
                service, METHODID_PEEK)))
        .addMethod(
          getRedriveMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.RedriveRequest,
              io.fila.v1.RedriveResponse>(
                service, METHODID_REDRIVE)))
        .addMethod(
          getPurgeMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.PurgeRequest,
              io.fila.v1.PurgeResponse>(
                service, METHODID_PURGE)))
        .addMethod(
          getReadJournalMethod(),
          io.grpc.stub.ServerCalls.asyncServerStreamingCall(
            new MethodHandlers<
              io.fila.v1.ReadJournalRequest,
              io.fila.v1.ReadJournalResponse>(
                service, METHODID_READ_JOURNAL)))
        .addMethod(
          getReadAuditMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.ReadAuditRequest,
              io.fila.v1.ReadAuditResponse>(
                service, METHODID_READ_AUDIT)))
        .addMethod(
          getDescribeServerMethod(),
          io.grpc.stub.ServerCalls.asyncUnaryCall(
            new MethodHandlers<
              io.fila.v1.DescribeServerRequest,
              io.fila.v1.DescribeServerResponse>(
                service, METHODID_DESCRIBE_SERVER)))
        .build();
  }

  private static abstract class FilaAdminBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoFileDescriptorSupplier, io.grpc.protobuf.ProtoServiceDescriptorSupplier {
    FilaAdminBaseDescriptorSupplier() {}

    @java.lang.Override
    public com.google.protobuf.Descriptors.FileDescriptor getFileDescriptor() {
      return io.fila.v1.Admin.getDescriptor();
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.ServiceDescriptor getServiceDescriptor() {
      return getFileDescriptor().findServiceByName("FilaAdmin");
    }
  }

  private static final class FilaAdminFileDescriptorSupplier
      extends FilaAdminBaseDescriptorSupplier {
    FilaAdminFileDescriptorSupplier() {}
  }

  private static final class FilaAdminMethodDescriptorSupplier
      extends FilaAdminBaseDescriptorSupplier
      implements io.grpc.protobuf.ProtoMethodDescriptorSupplier {
    private final java.lang.String methodName;

    FilaAdminMethodDescriptorSupplier(java.lang.String methodName) {
      this.methodName = methodName;
    }

    @java.lang.Override
    public com.google.protobuf.Descriptors.MethodDescriptor getMethodDescriptor() {
      return getServiceDescriptor().findMethodByName(methodName);
    }
  }

  private static volatile io.grpc.ServiceDescriptor serviceDescriptor;

  public static io.grpc.ServiceDescriptor getServiceDescriptor() {
    io.grpc.ServiceDescriptor result = serviceDescriptor;
    if (result == null) {
      synchronized (FilaAdminGrpc.class) {
        result = serviceDescriptor;
        if (result == null) {
          serviceDescriptor = result = io.grpc.ServiceDescriptor.newBuilder(SERVICE_NAME)
              .setSchemaDescriptor(new FilaAdminFileDescriptorSupplier())
              .addMethod(getCreateQueueMethod())
              .addMethod(getUpdateQueueMethod())
              .addMethod(getDeleteQueueMethod())
              .addMethod(getListQueuesMethod())
              .addMethod(getGetStatsMethod())
              .addMethod(getSetConfigMethod())
              .addMethod(getGetConfigMethod())
              .addMethod(getListConfigMethod())
              .addMethod(getDeleteConfigMethod())
              .addMethod(getExplainMethod())
              .addMethod(getDryRunHookMethod())
              .addMethod(getPauseQueueMethod())
              .addMethod(getResumeQueueMethod())
              .addMethod(getPeekMethod())
              .addMethod(getRedriveMethod())
              .addMethod(getPurgeMethod())
              .addMethod(getReadJournalMethod())
              .addMethod(getReadAuditMethod())
              .addMethod(getDescribeServerMethod())
              .build();
        }
      }
    }
    return result;
  }
}
